-- name: append_many
-- fenced
-- writes: records, witness
-- The batched route: many journals in one autocommitted statement, each with its own fence. The items arrive sorted by
-- journal and the lateral lookups run in that order, so locks are always taken in that order (unordered ones deadlock
-- with heartbeats). SKIP LOCKED: an open takeover of one journal does not delay the others; an item without a row is
-- retried alone. See `fence` for why this lock and no other. Several records of one journal are several items with one
-- predecessor: all of them pass, or none. The timeline as in `fence`.
with f as materialized (
  select i.*, l.notes, p.stamp
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[], :seqs::bigint[],
      string_to_array(:kinds, chr(31)), string_to_array(:bodies, chr(31)))
    as i(journal, tenant, token, nonce, after, seq, kind, body)
  cross join lateral (select l.notes from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.kind = 'run' for key share skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  where tape.on_timeline()),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select f.journal, f.seq, f.token,
    greatest(tape.stamp(), f.stamp),
    (select tape.now_ms()), f.kind, f.body from f),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes from f;

-- name: append_one
-- fenced
-- writes: records, witness
-- append_many for one record, which is what arrives with one run at a time: the same conditions and locks without
-- arrays, which saves a seventh of the server's time.
with f as materialized (
  select l.notes, p.stamp
  from (select l.notes from tape.leases l where l.journal = :journal and l.token = :token
    and l.tenant is not distinct from :tenant
    and l.nonce = :nonce and not l.doomed and l.kind = 'run' for key share skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = :journal and p.seq = :after limit 1) p
  where tape.on_timeline()),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select :journal, :seq, :token, greatest(tape.stamp(), f.stamp), (select tape.now_ms()), :kind, :body from f),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select cast(:journal as bigint) as journal, notes from f;

-- name: append_many.check
-- read
-- After a lost response: which items of the batch are in their journals, under their own token.
select i.journal, l.notes, l.tenant, l.workflow
from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :afters::bigint[]) as i(journal, tenant, token, after)
cross join lateral (select 1 from tape.records r where r.journal = i.journal and r.seq = i.after + 1 and r.token = i.token limit 1) r
cross join lateral (select l.notes, l.tenant, l.workflow from tape.leases l where l.journal = i.journal
  and l.tenant is not distinct from i.tenant limit 1) l;

-- name: create_many
-- unfenced: creating is unique by the run's id; the creator's first term starts in the same transaction
-- writes: leases, records, runs, witness
-- Runs without labels. For a tenant with a quota none is created here: each is admitted alone. IS TRUE keeps `in` from becoming a join that
-- compares every item with every other: this way it is a hash lookup.
with i as materialized (
  select i.* from unnest(:journals::bigint[], :tenants::text[], :ids::text[], :workflows::text[], :versions::text[],
      :input_hashes::text[], string_to_array(:bodies, chr(31)),
      :nonces::bigint[], :owners::text[], :owner_labels::text[], :reactors::text[], :ttls::bigint[], :stalls::bigint[])
    as i(journal, tenant, id, workflow, version, input_hash, body, nonce, owner, label, reactor, ttl, stall)),
m as materialized (select exists (select 1 from tape.quotas q where q.runs is not null or q.bytes is not null) as limited, token_floor, tape.stamp() as stamp, tape.now_ms() as at from tape.meta),
c as (insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, root, created_at)
  select i.journal, i.tenant, i.id, i.workflow, i.version, 'LIVE', i.input_hash, i.journal, m.at from i cross join m
  where (select 1 from tape.tombstones t where t.tenant = i.tenant and t.id = i.id limit 1) is null
    and (not m.limited or (select 1 from tape.quotas q where q.tenant = any (array[i.tenant, ''])
      and (q.runs is not null or q.bytes is not null) limit 1) is null)
  order by i.tenant, i.id on conflict do nothing returning journal),
l as (insert into tape.leases(journal, kind, tenant, run, workflow, token, nonce, owner, label, reactor, ttl_ms, expires_at, acquired_at,
    renewed_at, progress_at, max_stall_ms, reason, next_reactor, due_at)
  select i.journal, 'run', i.tenant, i.journal, i.workflow, case when i.owner is null then 0 else m.token_floor + 1 end, i.nonce, i.owner,
    i.label, i.reactor, i.ttl, m.at + i.ttl, m.at, m.at, m.at, i.stall, case when i.owner is not null then 'start' end,
    case when i.owner is null then 'recovery' end, m.at
  from i cross join m where (i.journal in (select journal from c)) is true returning journal, token),
r as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select i.journal, 1, 0, m.stamp, m.at, 'run.created', i.body from i cross join m where (i.journal in (select journal from c)) is true),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, cast(token as text) as token from l;

-- name: create_many.check
-- read
-- After a lost response: which runs of the batch exist. Their numbers belong to this process alone.
select l.journal, cast(l.token as text) as token from tape.leases l where l.journal = any(:journals::bigint[]);

-- name: end_many
-- fenced
-- writes: leases, records, runs, witness
-- Runs that are decided and ended at once, of many journals: only those that are LIVE, without a parent, and with
-- nothing open or armed. All others get no row here and take run.assert_settled and its relatives, alone. LIMIT 1 makes
-- every part a lookup per item: joined, some plans started with all runs. The || as in run.assert_settled. The update
-- of the run is the last condition, and the rest uses the rows it returns. The time is read once, not for each row.
with f as materialized (
  select i.*, l.notes, p.stamp
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[],
      string_to_array(:bodies, chr(31)), :note_counts::bigint[], :statuses::text[], :outcomes::text[])
    as i(journal, tenant, token, nonce, after, body, notes_taken, status, outcome)
  cross join lateral (select l.notes from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.kind = 'run' and l.notes = i.notes_taken and l.queue is null for update skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  where (select 1 from tape.effects e where e.run = i.journal and e.status not in ('CONFIRMED', 'FAILED', 'WITHDRAWN') limit 1) is null
    and (select 1 from tape.effects e where e.root = i.journal and e.role = 'compensation' and e.status = 'ARMED' limit 1) is null
    and (select 1 from tape.gates g where g.run = i.journal and g.status || '' = 'OPEN' limit 1) is null
    and (select 1 from tape.timers t where t.run = i.journal and t.status || '' = 'SET' limit 1) is null
    and (select 1 from tape.runs c where c.parent = i.journal and c.ended_at is null limit 1) is null
    and tape.on_timeline()),
r as (update tape.runs r set phase = f.status, cause = lower(f.status), outcome = f.outcome, ended_at = (select tape.now_ms())
  from f where r.journal = any (array[f.journal]) and r.phase || '' = 'LIVE' and r.parent is null
  returning f.journal, f.token, f.after, f.body, f.stamp, f.notes),
u as (update tape.leases l set token = l.token + 1, nonce = null, owner = null, label = null, reactor = null,
    expires_at = (select tape.now_ms()), doomed = false, last_end_reason = 'released', next_reactor = null, due_at = (select tape.now_ms()), open = false
  from r where l.journal = any (array[r.journal])),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select r.journal, r.after + 1, r.token,
    greatest(tape.stamp(), r.stamp),
    (select tape.now_ms()), 'run.ended', r.body from r),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes from r;

-- name: fire_many
-- unfenced: due timers of many runs at once: timer.fire, note.count and note.create in one statement
-- writes: leases, records, timers, witness
-- The condition is the fence of each. SKIP LOCKED as in append_many: a timer without a row (fired by another process,
-- locked, not due, its run ended) is retried alone. Never early. So is one whose last note was committed after this
-- statement began: without its stamp the feed could return the two in the wrong order.
with f as materialized (
  select i.*, l.notes + 1 as seq, l.held, l.workflow, coalesce(p.stamp, 0) as stamp
  from unnest(:journals::bigint[], :tenants::text[], :positions::bigint[], :purposes::text[], string_to_array(:bodies, chr(31)))
    as i(journal, tenant, pos, purpose, body)
  cross join lateral (select 1 from tape.timers t where t.run = i.journal and t.pos = i.pos and t.purpose = i.purpose
    and t.tenant is not distinct from i.tenant and t.status || '' = 'SET' and t.due_at <= tape.now_ms() for update skip locked) t
  cross join lateral (select l.notes, l.owner is not null or l.doomed as held, l.workflow from tape.leases l
    where l.journal = i.journal and l.open and l.kind = 'run' and l.queue is null for no key update skip locked) l
  left join lateral (select p.stamp from tape.records p where p.journal = -i.journal and p.seq = l.notes limit 1) p on true
  where l.notes = 0 or p.stamp is not null),
t as (update tape.timers t set status = 'FIRED' from f where t.run = any (array[f.journal]) and t.pos = f.pos and t.purpose = f.purpose),
u as (update tape.leases l set notes = f.seq, next_reactor = case when f.held then l.next_reactor else 'recovery' || coalesce('@' || l.build, '') end,
    due_at = case when f.held then l.due_at else tape.now_ms() end
  from f where l.journal = any (array[f.journal])),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select -f.journal, f.seq, 0, greatest(tape.stamp(), f.stamp), (select tape.now_ms()), 'timer.fired', f.body from f),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, held, tenant, workflow from f;

-- name: fire_many.check
-- read
-- After a lost response: which timers of the batch this very batch has fired. One transaction, one xmin; the witness
-- has it.
select i.journal, false as held, l.tenant, l.workflow
from unnest(:journals::bigint[], :tenants::text[], :positions::bigint[], :purposes::text[]) as i(journal, tenant, pos, purpose)
cross join lateral (select 1 from tape.timers t where t.run = i.journal and t.pos = i.pos and t.purpose = i.purpose
  and t.tenant is not distinct from i.tenant and t.status || '' = 'FIRED' and t.xmin = (select w.xmin from tape.witness w where w.id = :id) limit 1) t
cross join lateral (select l.tenant, l.workflow from tape.leases l where l.journal = i.journal limit 1) l;

-- name: journal.heads
-- read
-- journal.head, for many journals.
select i.journal, (select coalesce(max(r.seq), 0) from tape.records r where r.journal = i.journal) as head
from unnest(:journals::bigint[]) as i(journal);

-- name: leases.read
-- read
-- lease.read, for many journals.
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow, l.build, $slot_state, $queue_name,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now, r.id as name
from unnest(:journals::bigint[]) as i(journal)
cross join lateral (select l.journal, l.kind, l.tenant, l.run, l.token, l.nonce, l.owner, l.label, l.reactor, l.ttl_ms,
  l.expires_at, l.acquired_at, l.reason, l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at,
  l.progress_note, l.max_stall_ms, l.doomed, l.paused, l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow,
  l.build, l.queue from tape.leases l where l.journal = i.journal limit 1) l
left join lateral (select r.id from tape.runs r where r.journal = l.journal and l.kind = 'run' limit 1) r on true;

-- name: park_many
-- fenced
-- writes: leases, records, witness
-- Ends of terms, of many journals at once. FOR UPDATE conflicts with notes, renewals and fences alike: the comparison
-- of the note counter holds until the commit, so no wake-up is lost.
with f as materialized (
  select i.*, l.kind, l.notes, l.workflow, p.stamp
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[],
      string_to_array(:bodies, chr(31)), :note_counts::bigint[], :end_reasons::text[], :next_reactors::text[], :delays::bigint[])
    as i(journal, tenant, token, nonce, after, body, notes_taken, end_reason, next_reactor, delay_ms)
  cross join lateral (select l.kind, l.notes, l.workflow from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.queue is null for update skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  where (l.kind = 'name' or l.notes = i.notes_taken)
    and tape.on_timeline()),
u as (update tape.leases l set token = l.token + 1, nonce = null, owner = null, label = null, reactor = null,
    expires_at = (select tape.now_ms()), doomed = false, last_end_reason = f.end_reason,
    next_reactor = case when f.next_reactor = 'recovery' then 'recovery' || coalesce('@' || l.build, '') else f.next_reactor end,
    due_at = (select tape.now_ms()) + f.delay_ms
  from f where l.journal = any (array[f.journal])),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select f.journal, f.after + 1, f.token,
    greatest(tape.stamp(), f.stamp),
    (select tape.now_ms()), 'term.ended', f.body from f),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes, tenant, workflow from f;

-- name: records.append
-- fenced
-- writes: records
-- record.append, one for each of many journals. The stamp as there.
insert into tape.records(journal, seq, token, stamp, at, kind, body)
select i.journal, i.seq, i.token,
  greatest(tape.stamp(), p.stamp), tape.now_ms(), :kind, i.body
from unnest(:journals::bigint[], :seqs::bigint[], :tokens::bigint[], string_to_array(:bodies, chr(31)))
  as i(journal, seq, token, body)
cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.seq - 1 limit 1) p;

-- name: renew_many
-- fenced
-- writes: leases
-- All leases of a process in one statement, with a row for each that is held. Sorted by journal like every other
-- multi-row statement: 500 unordered heartbeats against updates of 100 rows deadlocked once a second. No rows on a
-- promoted server, as in `fence`: a holder that was fenced on the old one must not learn that it still holds.
with f as materialized (
  select i.journal, i.progress, i.ago, i.note
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :progresses::bigint[],
      :progress_agos::bigint[], :progress_notes::text[])
    as i(journal, tenant, token, nonce, progress, ago, note)
  cross join lateral (select 1 from tape.leases l where l.journal = i.journal and l.token = i.token and l.nonce = i.nonce
    and l.tenant is not distinct from i.tenant and not l.doomed and (l.max_stall_ms is null or i.progress > l.progress or tape.now_ms() - l.progress_at <= l.max_stall_ms)
    for no key update skip locked) l
  where tape.on_timeline())
update tape.leases l set expires_at = tape.now_ms() + l.ttl_ms, renewals = l.renewals + 1,
  longest_gap_ms = greatest(l.longest_gap_ms, tape.now_ms() - l.renewed_at), renewed_at = tape.now_ms(),
  progress_at = case when f.progress > l.progress then greatest(l.progress_at, tape.now_ms() - f.ago) else l.progress_at end,
  progress = greatest(l.progress, f.progress), progress_note = coalesce(f.note, l.progress_note), stalled = false
from f where l.journal = any (array[f.journal])
returning l.journal, l.tenant, cast(l.token as text) as token, cast(l.nonce as text) as nonce, l.notes, l.ttl_ms;

-- name: renew_many.lost
-- read
-- Which of these terms are over, and their successors. A term that has ended never comes back, so this needs no
-- transaction. Rows that are unchanged are left out: they are locked for the moment, stalled or doomed.
select i.at, l.token, l.owner, l.label
from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[])
  with ordinality as i(journal, tenant, token, nonce, at)
left join lateral (
  select cast(h.token as text) as token, h.token = i.token and h.nonce = i.nonce as same, h.owner, h.label
  from tape.leases h where h.journal = i.journal and h.tenant is not distinct from i.tenant limit 1) l on true
where l.same is not true;

-- name: end_sleep_many
-- fenced
-- writes: records, timers, witness
-- Ends of sleeps, of many runs at once: record.append and timer.fire in one statement, each under its fence. See
-- append_many for the locks and their order; a timer is locked by the process that fires it, and never for long. Never
-- early.
with f as materialized (
  select i.*, l.notes, p.stamp
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[], :positions::bigint[],
      string_to_array(:bodies, chr(31)))
    as i(journal, tenant, token, nonce, after, pos, body)
  cross join lateral (select l.notes from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.kind = 'run' for key share skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  cross join lateral (select 1 from tape.timers t where t.run = i.journal and t.pos = i.pos and t.purpose = 'sleep'
    and t.status || '' = 'SET' and t.due_at <= tape.now_ms() for update skip locked) t
  where tape.on_timeline()),
t as (update tape.timers t set status = 'FIRED' from f where t.run = any (array[f.journal]) and t.pos = f.pos
    and t.purpose || '' = 'sleep'),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select f.journal, f.after + 1, f.token,
    greatest(tape.stamp(), f.stamp),
    (select tape.now_ms()), 'sleep.ended', f.body from f),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes from f;

-- name: claim_many.pin
-- fenced
-- writes: leases
-- lease.pin, for runs of which the same transaction has started the terms.
update tape.leases set build = :build where journal = any(:journals::bigint[]) and kind || '' = 'run';

-- name: claim_many
-- unfenced: lease.take, for many journals, each on (owner, token) as read. SKIP LOCKED: a locked one is retried alone.
-- writes: leases
with f as materialized (
  select i.* from unnest(:journals::bigint[], :tokens::bigint[], :previous_owners::text[], :reasons::text[])
    as i(journal, token, previous_owner, reason)
  cross join lateral (select 1 from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.owner is not distinct from i.previous_owner and not l.paused for update skip locked) l
  where tape.on_timeline())
update tape.leases l set token = greatest(l.token, (select token_floor from tape.meta)) + 1, nonce = :nonce, owner = :owner,
  label = :label, reactor = :reactor, ttl_ms = :ttl_ms, expires_at = tape.now_ms() + :ttl_ms, acquired_at = tape.now_ms(),
  reason = f.reason, renewals = 0, renewed_at = tape.now_ms(), longest_gap_ms = 0, progress = 0,
  progress_at = tape.now_ms(), progress_note = null,
  max_stall_ms = case when l.kind = 'run' then l.max_stall_ms else :max_stall_ms end, doomed = false, stalled = false,
  next_reactor = null, last_end_reason = case when l.owner is null then l.last_end_reason else 'expired' end
from f where l.journal = any (array[f.journal])
returning l.journal, cast(l.token as text) as token, l.notes, l.begins;
