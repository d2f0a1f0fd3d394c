-- What tenants may have at most, and how much they have. The row without a tenant holds the default, and how far the
-- records have been measured. A limit that is null is the default's; -1 is none.
create table tape.quotas(
  tenant text collate "C" not null primary key, runs bigint, bytes bigint, schedules bigint, streams bigint,
  runs_used bigint not null default 0, runs_at bigint not null default 0, bytes_used bigint not null default 0,
  metered bigint, metered_at bigint not null default 0
);
-- Whether anybody has a limit is asked with every batch of starts, and rows of those that have none may be many.
create index quotas_limited on tape.quotas(tenant) where runs is not null or bytes is not null;
