-- What a run shows and answers while it runs: published values, replies to requests, gates that a token opens.
create table tape.published(
  run bigint not null, name text collate "C" not null, value text not null,
  seq bigint not null,                  -- the record that wrote the value
  at bigint not null, primary key(run, name)
);

create table tape.replies(
  journal bigint not null, n bigint not null, -- the note in the run's inbox that asked
  body text not null, at bigint not null, primary key(journal, n)
);

alter table tape.gates add column callback text; -- how a callback's body reaches the code: json or raw; null: no callback
alter table tape.gates add column called bigint; -- the note of the callback: no other signal resolves the gate

alter table tape.meta add column secret text;    -- tokens of callbacks derive from it
update tape.meta set secret =
  encode(sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')), 'hex');
