-- fenced
-- Runs that are decided and ended at once, of many journals: only those that are LIVE, without a parent, and with nothing
-- open or armed. Everything else gets no answer here and goes through run.settled and its kin, alone. LIMIT 1 keeps
-- every part a look-up for each item: joined, some plans began with all runs there are. The || as in run.settled. The
-- update of the run is the last of the conditions, and what it returns goes on; the time is asked once, not for each row.
with f as materialized (
  select i.*, l.notes, p.stamp
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[],
      string_to_array(:bodies, chr(31)), :takens::bigint[], :statuses::text[], :outcomes::text[])
    as i(journal, tenant, token, nonce, after, body, taken, status, outcome)
  cross join lateral (select l.notes from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.kind = 'run' and l.notes = i.taken for update skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  where (select 1 from tape.effects e where e.run = i.journal and e.status not in ('CONFIRMED', 'FAILED', 'WITHDRAWN') limit 1) is null
    and (select 1 from tape.effects e where e.root = i.journal and e.role = 'inverse' and e.status = 'ARMED' limit 1) is null
    and (select 1 from tape.gates g where g.run = i.journal and g.status || '' = 'OPEN' limit 1) is null
    and (select 1 from tape.timers t where t.run = i.journal and t.status || '' = 'SET' limit 1) is null
    and (select 1 from tape.runs c where c.root = i.journal and c.parent = i.journal and c.ended_at is null limit 1) is null
    and (select tape.on_timeline(m.timeline) from tape.meta m)),
r as (update tape.runs r set phase = f.status, cause = lower(f.status), outcome = f.outcome, ended_at = (select tape.now_ms())
  from f where r.journal = any (array[f.journal]) and r.phase || '' = 'LIVE' and r.parent is null
  returning f.journal, f.token, f.after, f.body, f.stamp, f.notes),
u as (update tape.leases l set token = l.token + 1, nonce = null, owner = null, label = null, reactor = null,
    expires_at = (select tape.now_ms()), doomed = false, last_end = 'released', wants = null, due_at = (select tape.now_ms()), open = false
  from r where l.journal = any (array[r.journal])),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select r.journal, r.after + 1, r.token,
    greatest((select pg_current_xact_id()::text::bigint + m.feed_offset from tape.meta m), r.stamp),
    (select tape.now_ms()), 'run.ended', r.body from r),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes from r
