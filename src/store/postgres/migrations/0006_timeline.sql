-- Whether the server is the one that the store knows: its timeline is the recorded one, or cannot be told. On another one,
-- a promoted standby, nothing of a term of before may be written or renewed, and no token or number handed out, until the
-- epoch was raised: what it has lost, a holder may have seen. One function, so that no statement can forget a part of it.
-- Plain SQL without a query of its own: the planner puts it into the statement, where a call would cost each one more.
create function tape.on_timeline(recorded text) returns boolean language sql volatile as $$
  select recorded is null or recorded = coalesce(tape.timeline(), recorded)
$$;
-- Where hints between processes are sent. Whoever may connect to the database may listen and notify everywhere; this name
-- has to be read here first.
alter table tape.meta add column channel text;
update tape.meta set channel = 'tape_' || replace(gen_random_uuid()::text, '-', '');
