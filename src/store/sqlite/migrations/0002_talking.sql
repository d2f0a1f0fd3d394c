-- What a run shows and answers while it runs: published values, replies to requests, gates that a token opens.
create table published(
  run integer not null, name text not null, value text not null,
  seq integer not null,                  -- the record that wrote the value
  at integer not null, primary key(run, name)
) strict, without rowid;

create table replies(
  journal integer not null, n integer not null, -- the note in the run's inbox that asked
  body text not null, at integer not null, primary key(journal, n)
) strict, without rowid;

alter table gates add column callback text;  -- how a callback's body reaches the code: json or raw; null: no callback
alter table gates add column called integer; -- the note of the callback: no other signal resolves the gate

alter table meta add column secret text;     -- tokens of callbacks derive from it
update meta set secret = lower(hex(randomblob(32)));
