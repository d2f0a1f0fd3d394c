-- Processes that say of themselves that they are at work, for people who look. Nothing else depends on it.
create table processes(
  tenant text not null, owner text not null, label text not null, at integer not null, body text not null,
  primary key(tenant, owner)
) strict, without rowid;
create index processes_at on processes(at);
