-- Processes that say of themselves that they are at work, for people who look. Nothing else depends on it.
create table tape.processes(
  tenant text not null, owner text collate "C" not null, label text collate "C" not null, at bigint not null, body text not null,
  primary key(tenant, owner)
);
create index processes_at on tape.processes(at);
