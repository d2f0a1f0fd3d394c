-- The build that a run is pinned to; null: any process may drive it. Rows without one are in none of these indexes.
alter table leases add column build text;
create index leases_build on leases(tenant, build) where build is not null and open = 1;
create index leases_pinned on leases(tenant) where build is not null and next_reactor is not null;

-- Builds whose processes have reported themselves. `workflows`: the names of its pinned workflows, as JSON.
create table builds(
  tenant text not null, build text not null, workflows text not null, current integer not null default 0,
  first_at integer not null, seen_at integer not null, primary key(tenant, build)
) strict, without rowid;
