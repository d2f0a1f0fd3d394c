-- fenced
-- Sleeps that are over, of many runs at once: record.append and timer.fire in one statement, under each one's fence. See
-- append for the locks and their order; a timer is locked by who fires it, and by nobody for long. Never early.
with f as materialized (
  select i.*, l.notes, p.stamp
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[], :poses::bigint[],
      string_to_array(:bodies, chr(31)))
    as i(journal, tenant, token, nonce, after, pos, body)
  cross join lateral (select l.notes from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.kind = 'run' for key share skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  cross join lateral (select 1 from tape.timers t where t.run = i.journal and t.pos = i.pos and t.purpose = 'sleep'
    and t.status || '' = 'SET' and t.due_at <= tape.now_ms() for update skip locked) t
  where (select tape.on_timeline(m.timeline) from tape.meta m)),
t as (update tape.timers t set status = 'FIRED' from f where t.run = any (array[f.journal]) and t.pos = f.pos
    and t.purpose || '' = 'sleep'),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select f.journal, f.after + 1, f.token,
    greatest((select pg_current_xact_id()::text::bigint + m.feed_offset from tape.meta m), f.stamp),
    (select tape.now_ms()), 'timer.passed', f.body from f),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes from f
