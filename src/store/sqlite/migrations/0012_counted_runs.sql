-- Of tenants without a limit nothing is counted, and nothing is in the index.
alter table runs add column counted integer not null default 0;
create index runs_counted on runs(tenant) where counted = 1 and ended_at is null;
