-- When each ended tree may be archived and deleted, by its root. Written by the reactor `retention` alone, so that the end
-- of a run costs nothing more.
create table retention(journal integer primary key, tenant text not null, due_at integer not null) strict;
create index retention_due on retention(tenant, due_at);
-- The archive's file that has the run.
alter table tombstones add column archive text;
