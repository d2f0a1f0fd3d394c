-- unfenced: timers that are due, of many runs at once: timer.fire, note.count and note.create in one statement. The
-- condition is the fence, for each. SKIP LOCKED as in append: what got no answer (fired by another, locked, not due, its run
-- ended) is tried alone. Never early.
with f as materialized (
  select i.*, l.notes + 1 as seq, l.held, l.workflow
  from unnest(:journals::bigint[], :tenants::text[], :poses::bigint[], :purposes::text[], string_to_array(:bodies, chr(31)))
    as i(journal, tenant, pos, purpose, body)
  cross join lateral (select 1 from tape.timers t where t.run = i.journal and t.pos = i.pos and t.purpose = i.purpose
    and t.tenant is not distinct from i.tenant and t.status || '' = 'SET' and t.due_at <= tape.now_ms() for update skip locked) t
  cross join lateral (select l.notes, l.owner is not null or l.doomed as held, l.workflow from tape.leases l
    where l.journal = i.journal and l.open and l.kind = 'run' for no key update skip locked) l),
t as (update tape.timers t set status = 'FIRED' from f where t.run = any (array[f.journal]) and t.pos = f.pos and t.purpose = f.purpose),
u as (update tape.leases l set notes = f.seq, wants = case when f.held then l.wants else 'recovery' end,
    due_at = case when f.held then l.due_at else tape.now_ms() end
  from f where l.journal = any (array[f.journal])),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select -f.journal, f.seq, 0, greatest((select pg_current_xact_id()::text::bigint + m.feed_offset from tape.meta m),
      coalesce((select p.stamp from tape.records p where p.journal = -f.journal and p.seq = f.seq - 1), 0)),
    (select tape.now_ms()), 'timer.fired', f.body from f),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, held, tenant, workflow from f
