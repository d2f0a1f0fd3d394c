-- Answers of calls that may be sent again: whoever sends the same key gets the same answer. Kept for a day.
create table repeats(
  tenant text not null, key text not null, hash text not null, answer text not null, at integer not null,
  primary key(tenant, key)
) strict, without rowid;
create index repeats_at on repeats(at);

-- Credentials of a server's callers. The secret is nowhere: only its hash.
create table tokens(
  id text primary key, tenant text not null, name text not null, role text not null, hash text not null,
  created_at integer not null, expires_at integer, revoked_at integer, used_at integer
) strict, without rowid;
