-- fenced
-- Terms that end, of many journals at once. FOR UPDATE conflicts with notes, renewals and fences alike: the comparison of
-- the counter of notes holds until the commit, so no wake-up is lost.
with f as materialized (
  select i.*, l.kind, l.notes, l.workflow, p.stamp
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[],
      string_to_array(:bodies, chr(31)), :takens::bigint[], :ends::text[], :wantses::text[], :in_mses::bigint[])
    as i(journal, tenant, token, nonce, after, body, taken, "end", wants, in_ms)
  cross join lateral (select l.kind, l.notes, l.workflow from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed for update skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  where (l.kind = 'name' or l.notes = i.taken)
    and (select tape.on_timeline(m.timeline) from tape.meta m)),
u as (update tape.leases l set token = l.token + 1, nonce = null, owner = null, label = null, reactor = null,
    expires_at = (select tape.now_ms()), doomed = false, last_end = f."end", wants = f.wants,
    due_at = (select tape.now_ms()) + f.in_ms
  from f where l.journal = any (array[f.journal])),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select f.journal, f.after + 1, f.token,
    greatest((select pg_current_xact_id()::text::bigint + m.feed_offset from tape.meta m), f.stamp),
    (select tape.now_ms()), 'term.ended', f.body from f),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes, tenant, workflow from f
