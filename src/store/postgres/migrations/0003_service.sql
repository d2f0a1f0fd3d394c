-- Answers of calls that may be sent again: whoever sends the same key gets the same answer. Kept for a day.
create table tape.repeats(
  tenant text not null, key text not null, hash text not null, answer text not null, at bigint not null,
  primary key(tenant, key)
);
create index repeats_at on tape.repeats(at);

-- Credentials of a server's callers. The secret is nowhere: only its hash.
create table tape.tokens(
  id text primary key, tenant text not null, name text not null, role text not null, hash text not null,
  created_at bigint not null, expires_at bigint, revoked_at bigint, used_at bigint
);
