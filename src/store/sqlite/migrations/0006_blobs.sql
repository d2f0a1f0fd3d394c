-- Large parts of recorded values, as text in chunks. `counted`: the bytes are in the tenant's usage.
create table blobs(
  journal integer not null, blob text not null, n integer not null, chunks integer not null,
  bytes integer not null, counted integer not null, body text not null,
  primary key(journal, blob, n)
) strict;
