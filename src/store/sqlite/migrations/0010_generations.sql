-- The current generation of a run: its first record after run.created, its first position, and how many notes earlier
-- generations have taken. Of blobs: the generation that stored them.
alter table leases add column begins integer not null default 1;
alter table leases add column begins_pos integer not null default 0;
alter table leases add column begins_notes integer not null default 0;
alter table blobs add column begins integer not null default 1;
create index blobs_generation on blobs(journal, begins, bytes);
