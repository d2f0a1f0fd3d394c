-- online
-- The build that a run is pinned to; null: any process may drive it. Rows without one are in none of these indexes.
alter table tape.leases add column if not exists build text;
-- Builds whose processes have reported themselves. `workflows`: the names of its pinned workflows, as JSON.
create table if not exists tape.builds(
  tenant text collate "C" not null, build text not null, workflows text not null, current boolean not null default false,
  first_at bigint not null, seen_at bigint not null, primary key(tenant, build)
);
create index concurrently leases_build on tape.leases(tenant, build, journal) where build is not null and open;
create index concurrently leases_pinned on tape.leases(tenant, journal) where build is not null and next_reactor is not null;
