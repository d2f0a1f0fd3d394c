-- name: admit.pick
-- read
-- The keys of a queue whose turn is next, and the first runs of each, for the process that holds the lock of the queue.
-- The counters of other keys can only fall meanwhile. Keys are locked in their order, like everywhere: without an order
-- two processes deadlock. Leases are locked without waiting: a run without a token is locked or held, and ends the list of
-- its key, because no run passes another. Twice the share of each key is listed, because some lists are short. A run that
-- never had a holder has one record.
with f as materialized (
  select greatest(0, least(:room::bigint, :concurrency::bigint - (select coalesce(sum(b.running), 0)
    from tape.queue_partitions b where b.queue = :queue and b.busy)))::bigint as free),
c as materialized (
  select p.key from tape.queue_partitions p
  where p.queue = :queue and p.ready and p.class <= :max_class
    and (select $backlog_of from tape.queue_slots s cross join lateral (select l.workflow, l.build from tape.leases l where l.journal = s.journal limit 1) l
      where s.queue = p.queue and s.key = p.key and s.state = 'QUEUED' order by s.class, s.since, s.journal limit 1)
      = any(:workflows::text[])
  order by p.class, p.vtime, p.entered, p.key limit (select f.free from f)),
o as materialized (select c.key from c order by c.key),
k as materialized (
  select p.key, p.class, p.vtime, p.entered, p.running, p.weight, p.tat from o
  cross join lateral (select p.key, p.class, p.vtime, p.entered, p.running, p.weight, p.tat from tape.queue_partitions p
    where p.queue = :queue and p.key = o.key and p.ready for no key update) p),
n as materialized (select count(*) as keys, sum(k.weight) as weights from k),
h as materialized (
  select k.key, s.journal, s.class, s.since, s.expires, s.nr from k cross join n cross join f
  cross join lateral (
    select s.journal, s.class, s.since, s.expires, row_number() over (order by s.class, s.since, s.journal) as nr from (
      select s.journal, s.class, s.since, s.expires from tape.queue_slots s where s.queue = :queue and s.key = k.key and s.state = 'QUEUED'
      order by s.class, s.since, s.journal
      limit case when n.keys = 1 then f.free else 2 * f.free * k.weight / n.weights + 1 end) s) s)
select k.key, k.class as key_class, k.vtime, k.entered, k.running, k.weight, k.tat, f.free, h.journal, h.class, h.expires,
  tape.now_ms() - h.since as waited_ms, cast(x.token as text) as token, x.notes, x.owner, x.last_end_reason, x.head, x.run_id,
  x.created, x.workflow, x.build
from k cross join f join h on h.key = k.key
left join lateral (
  select l.token, l.notes, l.owner, l.last_end_reason, l.workflow, l.build,
    case when l.token = 0 then 1 else (select max(r.seq) from tape.records r where r.journal = l.journal) end as head,
    case when l.token = 0 then (select r.body from tape.records r where r.journal = l.journal and r.seq = 1
      and octet_length(r.body) <= 4096 limit 1) end as created,
    (select r.id from tape.runs r where r.journal = l.journal limit 1) as run_id
  from tape.leases l where l.journal = h.journal and (l.owner is null or l.doomed or l.expires_at <= tape.now_ms())
    and $backlog_of = any(:workflows::text[]) for update skip locked) x on true
order by h.key, h.nr;

-- name: admit.take
-- unfenced: lease.take for the runs of a queue that admit.pick has locked, with their slots and the queue's counters
-- writes: leases, queue_partitions, queue_slots, queues, records
-- Of each key the first runs are taken, so its next run is the one behind them. The head was read under the lock of the
-- lease; if an earlier holder had still written meanwhile, the index of records would refuse the whole statement.
with i as materialized (
  select i.* from unnest(:journals::bigint[], :tokens::bigint[], :seqs::bigint[], :reasons::text[], string_to_array(:bodies, chr(31)))
    as i(journal, token, seq, reason, body)),
d as materialized (
  select d.* from unnest(:keys::text[], :starts::bigint[], :vtimes::bigint[], :tats::bigint[], :agains::bigint[])
    as d(key, starts, vtime, tat, again_at)),
l as (update tape.leases l set token = greatest(l.token, (select token_floor from tape.meta)) + 1, nonce = :nonce, owner = :owner,
    label = :label, reactor = :reactor, ttl_ms = :ttl_ms, expires_at = (select tape.now_ms()) + :ttl_ms,
    acquired_at = (select tape.now_ms()), reason = i.reason, renewals = 0, renewed_at = (select tape.now_ms()), longest_gap_ms = 0,
    progress = 0, progress_at = (select tape.now_ms()),
    progress_note = null, doomed = false, stalled = false, next_reactor = null,
    last_end_reason = case when l.owner is null then l.last_end_reason else 'expired' end
  from i where l.journal = any (array[i.journal]) and l.token = i.token and tape.on_timeline()
  returning l.journal, l.token, l.notes, l.begins, i.seq, i.body),
r as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select l.journal, l.seq, l.token, greatest(tape.stamp(), p.stamp), (select tape.now_ms()), 'term.started', l.body
  from l cross join lateral (select p.stamp from tape.records p where p.journal = l.journal and p.seq = l.seq - 1 limit 1) p),
s as (update tape.queue_slots s set state = 'HELD', since = (select tape.now_ms()) from i where s.journal = any (array[i.journal])),
p as (update tape.queue_partitions p set running = p.running + d.starts, waiting = p.waiting - d.starts, vtime = d.vtime, cap = :cap,
    tat = d.tat, again_at = d.again_at, class = coalesce((select s.class from tape.queue_slots s where s.queue = :queue and s.key = d.key
      and s.state = 'QUEUED' order by s.class, s.since, s.journal offset d.starts limit 1), p.class)
  from d where p.queue = :queue and p.key = any (array[d.key collate "C"])),
q as (update tape.queues q set tat = :tat, vnow = greatest(q.vnow, :vnow), started = q.started + :first_starts where q.id = :queue)
select journal, cast(token as text) as token, notes, begins from l;

-- name: create_many.queued
-- unfenced: as create_many, for runs that wait in a queue: with their slots and the counters of their keys
-- writes: leases, queue_partitions, queue_slots, records, run_labels, runs, witness
-- Keys in their order, as in admit.pick. The upsert locks a key even if nothing of it changes: this is what keeps a key
-- that is emptied and filled at once from being forgotten. The virtual time is read without a lock, which costs a turn at
-- most.
with i as materialized (
  select i.*, q.id as queue, q.vnow, q.counts = 'started' as keeps
  from unnest(:journals::bigint[], :tenants::text[], :ids::text[], :workflows::text[], :versions::text[], :input_hashes::text[],
      :label_sets::text[], string_to_array(:bodies, chr(31)), :queues::text[], :keys::text[], :priorities::bigint[], :weights::bigint[],
      :stalls::bigint[])
    as i(journal, tenant, id, workflow, version, input_hash, labels, body, queue_name, key, priority, weight, stall)
  cross join lateral (select q.id, q.vnow, q.counts from tape.queues q where q.tenant = i.tenant and q.name = i.queue_name limit 1) q),
m as materialized (select exists (select 1 from tape.quotas q where q.runs is not null or q.bytes is not null) as limited, tape.stamp() as stamp, tape.now_ms() as at),
c as (insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, labels, labelled, root, created_at)
  select i.journal, i.tenant, i.id, i.workflow, i.version, 'LIVE', i.input_hash, i.labels, case when i.labels is not null then true end, i.journal, m.at from i cross join m
  where (select 1 from tape.tombstones t where t.tenant = i.tenant and t.id = i.id limit 1) is null
    and (not m.limited or (select 1 from tape.quotas q where q.tenant = any (array[i.tenant, ''])
      and (q.runs is not null or q.bytes is not null) limit 1) is null)
  order by i.tenant, i.id on conflict do nothing returning journal),
n as materialized (select i.* from i where (i.journal in (select journal from c)) is true),
l as (insert into tape.leases(journal, kind, tenant, run, workflow, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at, max_stall_ms,
    due_at, queue)
  select n.journal, 'run', n.tenant, n.journal, n.workflow, 0, 0, m.at, m.at, m.at, m.at, n.stall, m.at, n.queue from n cross join m),
r as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select n.journal, 1, 0, m.stamp, m.at, 'run.created', n.body from n cross join m),
s as (insert into tape.queue_slots(journal, queue, key, class, since, state, keeps, expires)
  select n.journal, n.queue, n.key, n.priority, m.at, 'QUEUED', n.keeps, false from n cross join m),
p as (insert into tape.queue_partitions(queue, key, class, vtime, entered, waiting, weight)
  select n.queue, n.key, min(n.priority), min(n.vnow), min(m.at), count(*), coalesce(max(n.weight), 1000)
  from n cross join m group by n.queue, n.key order by n.queue, n.key collate "C"
  on conflict(queue, key) do update set waiting = queue_partitions.waiting + excluded.waiting,
    class = case when queue_partitions.waiting = 0 then excluded.class else least(queue_partitions.class, excluded.class) end,
    vtime = case when queue_partitions.waiting = 0 then greatest(queue_partitions.vtime, excluded.vtime) else queue_partitions.vtime end,
    entered = case when queue_partitions.waiting = 0 then excluded.entered else queue_partitions.entered end,
    weight = excluded.weight),
b as (insert into tape.run_labels(tenant, key, value, journal)
  select n.tenant, j.key, j.value, n.journal from n cross join lateral json_each_text(n.labels::json) j where n.labels is not null),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select n.journal, '0' as token from n;

-- name: end_many.queued
-- fenced
-- writes: leases, queue_partitions, queue_slots, records, runs, witness
-- end_many, for runs of queues: their slots are returned. Those with a unique key go alone. Keys as in admit.pick.
with f as materialized (
  select i.*, l.notes, p.stamp
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[],
      string_to_array(:bodies, chr(31)), :note_counts::bigint[], :statuses::text[], :outcomes::text[])
    as i(journal, tenant, token, nonce, after, body, notes_taken, status, outcome)
  cross join lateral (select l.notes from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.kind = 'run' and l.notes = i.notes_taken and l.queue > 0 for update skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  where (select 1 from tape.effects e where e.run = i.journal and e.status not in ('CONFIRMED', 'FAILED', 'WITHDRAWN') limit 1) is null
    and (select 1 from tape.effects e where e.root = i.journal and e.role = 'compensation' and e.status = 'ARMED' limit 1) is null
    and (select 1 from tape.business_keys b where b.run = i.journal and b.pos = -1 limit 1) is null
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
s as (delete from tape.queue_slots s using r where s.journal = any (array[r.journal]) returning s.queue, s.key, s.state),
d as materialized (select s.queue, s.key, count(*) filter (where s.state = 'HELD') as held, count(*) filter (where s.state = 'QUEUED') as waiting
  from s group by s.queue, s.key order by s.queue, s.key collate "C"),
k as materialized (select d.queue, d.key, d.held, d.waiting from d cross join lateral (select 1 from tape.queue_partitions p
  where p.queue = d.queue and p.key = d.key collate "C" for no key update) p),
p as (update tape.queue_partitions p set running = p.running - k.held, waiting = p.waiting - k.waiting
  from k where p.queue = any (array[k.queue]) and p.key = any (array[k.key collate "C"])),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select r.journal, r.after + 1, r.token,
    greatest(tape.stamp(), r.stamp),
    (select tape.now_ms()), 'run.ended', r.body from r),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes from r;

-- name: park_many.queued
-- fenced
-- writes: leases, queue_partitions, queue_slots, records, witness
-- park_many, for runs of queues that have a slot: one that waits gives it up, unless the queue counts started runs. One
-- without a slot, and one that is wanted again, go alone.
with f as materialized (
  select i.*, l.kind, l.notes, l.workflow, p.stamp, s.keeps
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[],
      string_to_array(:bodies, chr(31)), :note_counts::bigint[], :end_reasons::text[], :next_reactors::text[], :delays::bigint[])
    as i(journal, tenant, token, nonce, after, body, notes_taken, end_reason, next_reactor, delay_ms)
  cross join lateral (select l.kind, l.notes, l.workflow from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.queue > 0 for update skip locked) l
  cross join lateral (select s.keeps from tape.queue_slots s where s.journal = i.journal and s.state = 'HELD' limit 1) s
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  where l.notes = i.notes_taken and i.next_reactor is null
    and tape.on_timeline()),
u as (update tape.leases l set token = l.token + 1, nonce = null, owner = null, label = null, reactor = null,
    expires_at = (select tape.now_ms()), doomed = false, last_end_reason = f.end_reason, next_reactor = f.next_reactor,
    due_at = (select tape.now_ms()) + f.delay_ms
  from f where l.journal = any (array[f.journal])),
s as (update tape.queue_slots s set state = 'PARKED', since = (select tape.now_ms()) from f
  where s.journal = any (array[f.journal]) and not f.keeps returning s.queue, s.key),
d as materialized (select s.queue, s.key, count(*) as held from s group by s.queue, s.key order by s.queue, s.key collate "C"),
k as materialized (select d.queue, d.key, d.held from d cross join lateral (select 1 from tape.queue_partitions p
  where p.queue = d.queue and p.key = d.key collate "C" for no key update) p),
p as (update tape.queue_partitions p set running = p.running - k.held from k where p.queue = any (array[k.queue]) and p.key = any (array[k.key collate "C"])),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select f.journal, f.after + 1, f.token,
    greatest(tape.stamp(), f.stamp),
    (select tape.now_ms()), 'term.ended', f.body from f),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes, tenant, workflow from f;
