-- name: end_many.children
-- fenced
-- writes: leases, records, runs, witness
-- end_many, for children without children of their own: each sends a note to its parent, whose counter is locked once
-- for all of them. That lock is waited for, because the children of one run end at the same time in many processes.
-- Parents are locked in their order; one that has ended or has a queue is left to the plan. Numbers are given to what
-- has passed every condition, so that an inbox stays dense. The stamp of the last note is read behind the lock.
with f as materialized (
  select i.*, l.notes, p.stamp
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[],
      string_to_array(:bodies, chr(31)), :note_counts::bigint[], :statuses::text[], :outcomes::text[], :parents::bigint[],
      string_to_array(:notes, chr(31)))
    as i(journal, tenant, token, nonce, after, body, notes_taken, status, outcome, parent, note)
  cross join lateral (select l.notes from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.kind = 'run' and l.notes = i.notes_taken and l.queue is null for update skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  cross join lateral (select 1 from tape.runs r where r.journal = i.journal and coalesce(r.parent, 0) = i.parent and r.phase || '' = 'LIVE' limit 1) r
  where (select 1 from tape.effects e where e.run = i.journal and e.status not in ('CONFIRMED', 'FAILED', 'WITHDRAWN') limit 1) is null
    and (select 1 from tape.gates g where g.run = i.journal and g.status || '' = 'OPEN' limit 1) is null
    and (select 1 from tape.timers t where t.run = i.journal and t.status || '' = 'SET' limit 1) is null
    and (select 1 from tape.runs c where c.parent = i.journal limit 1) is null
    and tape.on_timeline()),
d as materialized (select distinct f.parent, f.tenant from f order by f.parent),
p as materialized (
  select d.parent, l.notes, l.held, l.workflow from d cross join lateral (
    select l.notes, l.owner is not null or l.doomed as held, l.workflow from tape.leases l
    where l.journal = d.parent and l.tenant is not distinct from d.tenant and l.open and l.kind = 'run' and l.queue is null for no key update) l),
s as materialized (select p.parent, p.notes, p.held, p.workflow, coalesce(tape.stamp_of(-p.parent, p.notes), 0) as stamp from p),
n as materialized (
  select f.journal, f.tenant, f.token, f.after, f.body, f.status, f.outcome, f.stamp, f.notes, f.parent, f.note, s.held, s.workflow,
    s.notes + row_number() over (partition by f.parent order by f.journal) as place, s.stamp as last
  from f join s on s.parent = f.parent),
r as (update tape.runs r set phase = n.status, cause = lower(n.status), outcome = n.outcome, ended_at = (select tape.now_ms())
  from n where r.journal = any (array[n.journal])),
u as (update tape.leases l set token = l.token + 1, nonce = null, owner = null, label = null, reactor = null,
    expires_at = (select tape.now_ms()), doomed = false, last_end_reason = 'released', next_reactor = null, due_at = (select tape.now_ms()), open = false
  from n where l.journal = any (array[n.journal])),
v as (update tape.leases l set notes = c.last, next_reactor = case when c.held then l.next_reactor else 'recovery' || coalesce('@' || l.build, '') end,
    due_at = case when c.held then l.due_at else (select tape.now_ms()) end
  from (select n.parent, max(n.place) as last, bool_or(n.held) as held from n group by n.parent) c where l.journal = any (array[c.parent])),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select n.journal, n.after + 1, n.token, greatest(tape.stamp(), n.stamp), (select tape.now_ms()), 'run.ended', n.body from n
  union all
  select -n.parent, n.place, 0, greatest(tape.stamp(), n.last), (select tape.now_ms()), 'child.settled', n.note from n),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes, held, tenant, workflow from n;

-- name: spawn_many
-- fenced
-- writes: leases, records, runs, witness
-- append_many, for entries that also start children without a queue, labels or a build: run.create, lease.create and
-- record.create for all of them. An entry of which one id is taken has no row here; one that is taken meanwhile fails
-- the statement, and each goes alone.
with i as materialized (
  select i.* from unnest(:children::bigint[], :parents::bigint[], :positions::bigint[], :owners::text[], :ids::text[], :workflows::text[],
      :versions::text[], :input_hashes::text[], :stalls::bigint[], string_to_array(:first_bodies, chr(31)))
    as i(journal, parent, pos, tenant, id, workflow, version, input_hash, stall, body)),
t as materialized (select i.parent from i
  where (select 1 from tape.runs r where r.tenant = i.tenant and r.id = i.id limit 1) is not null
    or (select 1 from tape.tombstones t where t.tenant = i.tenant and t.id = i.id limit 1) is not null),
f as materialized (
  select i.*, l.notes, p.stamp, r.root, r.counted
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :afters::bigint[], :seqs::bigint[],
      string_to_array(:kinds, chr(31)), string_to_array(:bodies, chr(31)))
    as i(journal, tenant, token, nonce, after, seq, kind, body)
  cross join lateral (select l.notes from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.kind = 'run' for key share skip locked) l
  cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.after limit 1) p
  cross join lateral (select r.root, coalesce(r.counted, false) as counted from tape.runs r
    where r.journal = i.journal and r.phase || '' = 'LIVE' limit 1) r
  where (i.journal in (select t.parent from t)) is not true and tape.on_timeline()),
g as materialized (select f.journal, f.root, f.counted from f where f.seq = f.after + 1),
m as materialized (select tape.stamp() as stamp, tape.now_ms() as at),
c as (insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, parent, parent_pos, root, created_at, counted)
  select i.journal, i.tenant, i.id, i.workflow, i.version, 'LIVE', i.input_hash, i.parent, i.pos, g.root, m.at, g.counted
  from i join g on g.journal = i.parent cross join m order by i.tenant, i.id),
l as (insert into tape.leases(journal, kind, tenant, run, workflow, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at,
    max_stall_ms, next_reactor, due_at)
  select i.journal, 'run', i.tenant, i.journal, i.workflow, 0, 0, m.at, m.at, m.at, m.at, i.stall, 'recovery', m.at
  from i join g on g.journal = i.parent cross join m),
w as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select f.journal, f.seq, f.token, greatest(m.stamp, f.stamp), m.at, f.kind, f.body from f cross join m
  union all
  select i.journal, 1, 0, m.stamp, m.at, 'run.created', i.body from i join g on g.journal = i.parent cross join m),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, notes from f;
