-- When each ended tree may be archived and deleted, by its root. Written by the reactor `retention` alone, so that the end
-- of a run costs nothing more.
create table tape.retention(journal bigint primary key, tenant text collate "C" not null, due_at bigint not null);
create index retention_due on tape.retention(tenant, due_at);
-- The archive's file that has the run.
alter table tape.tombstones add column archive text;
