-- online
-- Runs are listed in the order in which they began, by the index that counts and ranges of time have: one index less for
-- each run. A list that stood at a run which was then deleted goes on where that was.
alter table tape.tombstones add column if not exists journal bigint;
alter table tape.tombstones add column if not exists created_at bigint;
alter table tape.tombstones add column if not exists ended_at bigint;
create index concurrently tombstones_place on tape.tombstones(journal) where journal is not null;

drop index concurrently if exists tape.runs_tenant;
