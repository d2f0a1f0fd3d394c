-- Where a named lease's work has come to. Its holder moves it; no index has it, so that the update stays in its page.
alter table tape.leases add column checkpoint text;

-- Events that a sink refused. `state`: OPEN, REPLAY (an operator wants it sent again), SENT or DISCARDED.
create table tape.dead_letters(
  tenant text collate "C" not null, sink text collate "C" not null, event text collate "C" not null,
  journal bigint not null, seq bigint not null, inbox boolean not null, kind text not null, at bigint not null,
  attempts bigint not null, code text not null, error text not null, state text not null default 'OPEN',
  changed_at bigint not null, primary key(tenant, sink, event)
);
create index dead_letters_state on tape.dead_letters(tenant, sink, state, at, event);
