-- Runs are listed in the order in which they began, by the index that counts and ranges of time have: one index less for
-- each run. A list that stood at a run which was then deleted goes on where that was.
alter table tombstones add column journal integer;
alter table tombstones add column created_at integer;
alter table tombstones add column ended_at integer;
create index tombstones_place on tombstones(journal) where journal is not null;
drop index runs_tenant;
