-- fenced
-- The hot path: many journals in one autocommitted statement, each with its own fence. The items arrive sorted by
-- journal and the lateral look-ups run in that order, so locks are always taken in that order (unordered ones deadlock
-- with heartbeats). SKIP LOCKED: an open takeover of one journal costs the others nothing; what got no answer is tried
-- again alone. See fence.sql for why this lock and no other. Several records of one journal are several items with one
-- predecessor: all of them pass, or none. The timeline as in fence.sql.
with f as materialized (
  select i.*, l.notes, p.stamp
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[], :seqs::bigint[],
      string_to_array(:kinds, chr(31)), string_to_array(:bodies, chr(31)))
    as i(journal, tenant, token, nonce, after, seq, kind, body)
  cross join lateral (select l.notes from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.kind = 'run' for key share skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  where (select tape.on_timeline(m.timeline) from tape.meta m)),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select f.journal, f.seq, f.token,
    greatest((select pg_current_xact_id()::text::bigint + m.feed_offset from tape.meta m), f.stamp),
    (select tape.now_ms()), f.kind, f.body from f),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes from f
