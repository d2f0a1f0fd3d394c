-- online
-- Of tenants without a limit nothing is counted, and nothing is in the index.
alter table tape.runs add column if not exists counted boolean not null default false;
create index concurrently runs_counted on tape.runs(tenant) where counted and ended_at is null;
