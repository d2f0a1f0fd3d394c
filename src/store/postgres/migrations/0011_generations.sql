-- online
-- The current generation of a run: its first record after run.created, its first position, and how many notes earlier
-- generations have taken. Of blobs: the generation that stored them.
alter table tape.leases add column if not exists begins bigint not null default 1;
alter table tape.leases add column if not exists begins_pos bigint not null default 0;
alter table tape.leases add column if not exists begins_notes bigint not null default 0;
alter table tape.blobs add column if not exists begins bigint not null default 1;
create index concurrently blobs_generation on tape.blobs(journal, begins) include (bytes);
