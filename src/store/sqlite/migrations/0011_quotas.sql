-- What tenants may have at most, and how much they have. The row without a tenant holds the default, and how far the
-- records have been measured. A limit that is null is the default's; -1 is none.
create table quotas(
  tenant text not null primary key, runs integer, bytes integer, schedules integer, streams integer,
  runs_used integer not null default 0, runs_at integer not null default 0, bytes_used integer not null default 0,
  metered integer, metered_at integer not null default 0
) strict, without rowid;
