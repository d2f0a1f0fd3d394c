-- Where a named lease's work has come to. Its holder moves it.
alter table leases add column checkpoint text;

-- Events that a sink refused. `state`: OPEN, REPLAY (an operator wants it sent again), SENT or DISCARDED.
create table dead_letters(
  tenant text not null, sink text not null, event text not null,
  journal integer not null, seq integer not null, inbox integer not null, kind text not null, at integer not null,
  attempts integer not null, code text not null, error text not null, state text not null default 'OPEN',
  changed_at integer not null, primary key(tenant, sink, event)
) strict, without rowid;
create index dead_letters_state on dead_letters(tenant, sink, state, at, event);
