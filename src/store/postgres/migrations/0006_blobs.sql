-- Large parts of recorded values, as text in chunks. `counted`: the bytes are in the tenant's usage.
create table tape.blobs(
  journal bigint not null, blob text collate "C" not null, n integer not null, chunks integer not null,
  bytes bigint not null, counted boolean not null, body text not null,
  primary key(journal, blob, n)
);
