-- Whether the server is the one that the store knows: its timeline is the recorded one, or cannot be told. On another one,
-- a promoted standby, nothing of a term of before may be written or renewed, and no token or number handed out, until the
-- epoch was raised: what it has lost, a holder may have seen. One function, so that no statement can forget a part of it.
create function tape.on_timeline() returns boolean language plpgsql volatile as $$
declare recorded text;
begin
  select m.timeline into recorded from tape.meta m;
  return recorded is null or recorded = coalesce(tape.timeline(), recorded);
end $$;
-- Where hints between processes are sent. Whoever may connect to the database may listen and notify everywhere; this name
-- has to be read here first.
alter table tape.meta add column channel text;
update tape.meta set channel = 'tape_' || replace(gen_random_uuid()::text, '-', '');
