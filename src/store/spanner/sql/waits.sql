-- macro: $gate_columns
g.run, g.pos, g.tenant, g.name, g.status, g.binds, g.payload, g.value, g.opened_at, g.approvers, g.callback;

-- macro: $begins_pos
-- The first position of the current generation of the run. No gate or timer of an earlier one is open.
coalesce((select l.begins_pos from seen_leases l where l.journal = :run), 0);

-- name: callback.find
-- read
-- The gate that a callback's token names, whichever run has it: the token is the right.
select r.tenant, r.id, g.name, g.status, g.callback, g.called from gates g join runs r on r.journal = g.run
where g.run = :run and g.pos = :pos and g.callback is not null;

-- name: callback.secret
-- read
-- Only for the holder of this fence.
select m.secret from meta m where m.one and exists (select 1 from leases l where l.journal = :journal and l.tenant = :tenant
  and l.kind = 'run' and l.token = :token and l.nonce = :nonce and not l.doomed);

-- name: gate.answer
-- unfenced: with the note of an answer that must match; only the run's holder resolves the gate
-- writes: gates
update gates set called = :note where run = :run and pos = :pos and status = 'OPEN' and callback is null and called is null;

-- name: gate.approve
-- unfenced: with the note that approves it; only the run's holder resolves the gate
-- writes: gates
update gates set approvals = approvals || :note || ',' where run = :run and pos = :pos and status = 'OPEN';

-- name: gate.call
-- unfenced: with the note of the callback; only the run's holder resolves the gate
-- writes: gates
update gates set called = :note where run = :run and pos = :pos and status = 'OPEN' and callback is not null and called is null;

-- name: gate.create
-- fenced
-- writes: gates
insert or ignore into gates(run, pos, tenant, name, status, binds, payload, approvers, callback, opened_at)
select :run, :pos, r.tenant, :name, 'OPEN', :binds, :payload, :approvers, :callback, :at from runs r where r.journal = :run and r.phase = 'LIVE';

-- name: gate.list
-- read
select $gate_columns from $shards s
cross join unnest(array(select as struct g.run, g.pos from gates@{force_index=gates_tenant} g
  where g.tenant = :tenant and g.shard = s and (g.opened_at > :after_at or (g.opened_at = :after_at and (g.born > :after_run or (g.born = :after_run and g.pos > :after_pos))))
  order by g.opened_at, g.born, g.pos limit :limit)) k
join gates g on g.run = k.run and g.pos = k.pos
order by g.opened_at, g.born, g.pos limit :limit;

-- name: gate.open
-- read
select $gate_columns from $shards s
cross join unnest(array(select as struct g.run, g.pos from gates@{force_index=gates_open, $sparse} g
  where g.waiting = :tenant and g.shard = s and (g.opened_at > :after_at or (g.opened_at = :after_at and (g.born > :after_run or (g.born = :after_run and g.pos > :after_pos))))
  order by g.opened_at, g.born, g.pos limit :limit)) k
join gates g on g.run = k.run and g.pos = k.pos
order by g.opened_at, g.born, g.pos limit :limit;

-- name: gate.run
-- read
select $gate_columns from gates g where g.run = :run and g.tenant = :tenant and (not :open or g.status = 'OPEN')
  and (g.opened_at > :after_at or (g.opened_at = :after_at and (g.born > :after_run or (g.born = :after_run and g.pos > :after_pos))))
order by g.opened_at, g.born, g.pos limit :limit;

-- name: gate.status
-- fenced
-- writes: gates
-- A gate with approvers is resolved only by a signal that one of them has sent, a callback only by its token's.
update gates set status = :to, value = :value where run = :run and pos = :pos and status = 'OPEN'
  and (approvers is null or :to <> 'RECEIVED' or strpos(approvals, ',' || :note || ',') > 0)
  and (callback is null or :to <> 'RECEIVED' or called = cast(:note as int64));

-- name: gate.wait_again
-- fenced
-- writes: gates
update gates set called = null where run = :run and pos >= $begins_pos and called = :note and callback is null;

-- name: gate.waiting
-- read
select pos, binds, approvers, callback, called from gates
where run = :run and pos >= $begins_pos and name = :name and status = 'OPEN' order by pos;

-- name: gates.withdraw
-- fenced
-- writes: gates
update gates set status = 'WITHDRAWN' where run = :run and pos >= $begins_pos and status = 'OPEN';

-- name: meta.secret
-- read
select secret from meta where one;

-- name: published.list
-- read
select p.name, p.value, p.seq, p.at from published p
where p.run = (select r.journal from runs@{force_index=runs_id} r where r.tenant = :tenant and r.id = :id) and p.name > :above and (:name is null or p.name = :name)
order by p.name limit :limit;

-- name: published.put
-- fenced
-- writes: published
insert or update into published(run, name, value, seq, `at`)
select :run, :name, :value, :seq, :at from unnest([1])
where (select count(*) from published p where p.run = :run and p.name <> :name) < :max;

-- name: reply.create
-- fenced
-- writes: replies
-- Once, and only to a signal that the inbox has.
insert or ignore into replies(journal, n, body, `at`)
select :run, :note, :body, :at from records r where r.journal = -:run and r.seq = :note and r.kind = 'signal.sent';

-- name: reply.find
-- read
select x.n, x.body, x.at from replies x
where x.journal = (select r.journal from runs@{force_index=runs_id} r where r.tenant = :tenant and r.id = :id) and x.n = :n;

-- name: schedule.change
-- unfenced: a setting, written from outside a run; CAS on what its writer has read
-- writes: schedules
update schedules set version = version + 1, spec = :spec, next_at = :next_at, paused = :paused
where tenant = :tenant and id = :id and version = :version and spec = :seen
then return tenant, id, version, spec, next_at, paused;

-- name: schedule.count
-- read
select count(*) as n from schedules where tenant = :tenant;

-- name: schedule.delete
-- unfenced: a setting, written from outside a run
-- writes: schedules
delete from schedules where tenant = :tenant and id = :id;

-- name: schedule.due
-- read
select s.tenant, s.id, s.version, s.spec, s.next_at, s.paused
from schedules@{force_index=schedules_due, $sparse} s where s.waiting = :tenant and s.next_at <= :at order by s.next_at limit :limit;

-- name: schedule.find
-- read
select version from schedules where tenant = :tenant and id = :id;

-- name: schedule.fire
-- unfenced: one conditional transaction; the version is the fence, so each firing starts its runs once. Never early.
-- writes: schedules
update schedules set version = version + 1, next_at = :next_at, spec = coalesce(:spec, spec)
where tenant = :tenant and id = :id and version = :version and next_at <= :at and not paused
  and (:seen is null or spec = :seen);

-- name: schedule.list
-- read
select tenant, id, version, spec, next_at, paused from schedules where tenant = :tenant and id > :above order by id limit :limit;

-- name: schedule.put
-- unfenced: a setting, written from outside a run; a new one under a quota only if it was admitted
-- writes: schedules
insert or update into schedules(tenant, id, version, spec, next_at, paused)
select x.tenant, x.id, coalesce(v.version, 0) + 1, :spec, :next_at, :paused
from (select :tenant as tenant, :id as id) x left join schedules v on v.tenant = x.tenant and v.id = x.id
where case when v.id is not null then not :fresh
  else :admitted or not exists (select 1 from quotas q where q.tenant in (:tenant, '') and q.schedules is not null) end
then return tenant, id, version, spec, next_at, paused;

-- name: schedule.tenants
-- read
-- The tenants with waiting schedules, as in timer.tenants.
select distinct s.waiting as tenant from schedules@{force_index=schedules_due, $sparse} s where s.waiting is not null order by 1 limit :limit;

-- name: signal.find
-- read
-- The run, and whether an open gate of this name is restricted: to approvers, or for tokens because it binds a call.
select r.journal, r.root, exists(select 1 from gates g
  where g.run = r.journal and g.name = :name and g.status = 'OPEN' and (g.approvers is not null or (:by_token and g.binds is not null))) as restricted
from runs@{force_index=runs_id} r where r.tenant = :tenant and r.id = :id;

-- name: timer.create
-- fenced
-- writes: timers
insert or ignore into timers(run, pos, purpose, tenant, status, due_at)
select :run, :pos, :purpose, r.tenant, 'SET', coalesce(:until, :now + :delay_ms) from runs r where r.journal = :run;

-- name: timer.due
-- read
-- Shard by shard in the order of the index, so that LIMIT ends the scan early.
select d.run, d.pos, d.purpose, d.tenant, d.status, d.due_at, :now - d.due_at as late_ms from $shards s
cross join unnest(array(select as struct t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at, t.born from timers@{force_index=timers_due, $sparse} t
  where t.waiting = :tenant and t.shard = s and t.due_at <= :now order by t.due_at limit :limit)) d
order by d.due_at, d.born, d.pos limit :limit;

-- name: timer.fire
-- unfenced: firing is one conditional transaction, SET → FIRED plus the note; the condition is the fence. Never early.
-- writes: timers
-- The run's holder fires it without a note, together with its record and under its fence.
update timers set status = 'FIRED'
where run = :run and pos = :pos and purpose = :purpose and tenant = :tenant and status = 'SET' and due_at <= :now;

-- name: timer.list
-- read
select d.run, d.pos, d.purpose, d.tenant, d.status, d.due_at from $shards s
cross join unnest(array(select as struct t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at, t.born from timers@{force_index=timers_tenant} t
  where t.tenant = :tenant and t.shard = s order by t.due_at, t.born, t.pos limit :limit)) d
order by d.due_at, d.born, d.pos limit :limit;

-- name: timer.run
-- read
select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at
from timers t where t.run = :run and t.tenant = :tenant order by t.due_at, t.pos limit :limit;

-- name: timer.status
-- fenced
-- writes: timers
update timers set status = :to where run = :run and pos = :pos and purpose = :purpose and status = 'SET';

-- name: timer.tenants
-- read
-- The tenants with timers set, from the index that has no others: see lease.backlogs.
select distinct t.waiting as tenant from timers@{force_index=timers_due, $sparse} t where t.waiting is not null order by 1 limit :limit;

-- name: timers.cancel
-- fenced
-- writes: timers
update timers set status = 'CANCELLED' where run = :run and status = 'SET';

-- name: timers.withdraw
-- fenced
-- writes: timers
-- Of the current generation. What the code did not set stays: the deadline, and the time of a redrive.
update timers set status = 'CANCELLED'
where run = :run and pos >= $begins_pos and status = 'SET' and purpose not in ('deadline', 'redrive');

-- name: agenda
-- read
-- When each reactor next has work, in one query for all of them: the only query of an idle process. The row without a
-- name is the next lease to expire, whose item may belong to any reactor. Reads the first entry of each backlog, and
-- nothing of other backlogs, however long they are. A queue has work if it is not full and a key is ready, by its rates.
-- all_of: the tenant of which every workflow and every build counts.
select json_value(q, '$[0]') as reactor, min((select min(d) from $shards s cross join unnest(array(
    select l.due_at from leases@{force_index=leases_due, $sparse} l where l.next_reactor = json_value(q, '$[0]') and l.tenant = json_value(q, '$[1]')
    and l.workflow = json_value(q, '$[2]') and l.shard = s and not l.paused order by l.due_at limit 1)) d)) - :now as in_ms
from unnest(json_query_array(:backlogs)) q group by 1
union all
select null, min(case when l.doomed then 0 else l.expires_at end) - :now
from unnest(json_query_array(:holders)) h join leases@{force_index=leases_held, $sparse} l
  on l.held = json_value(h, '$[0]') and l.workflow = json_value(h, '$[1]')
where l.build is null or l.build = :build
union all
select 'recovery', min(l.due_at) - :now from (select 'recovery' as reactor union all select 'recovery@' || b.build from builds b where b.tenant = :all_of) w
join leases@{force_index=leases_due, $sparse} l on l.next_reactor = w.reactor and l.tenant = :all_of and not l.paused
union all
select null, min(case when l.doomed then 0 else l.expires_at end) - :now from leases@{force_index=leases_held, $sparse} l
where l.held = :all_of
union all
select 'timers', min(x.due_at) - :now from (
  select (select min(d) from $shards s cross join unnest(array(select t.due_at from timers@{force_index=timers_due, $sparse} t
    where t.waiting = i and t.shard = s order by t.due_at limit 1)) d) as due_at
  from unnest(json_value_array(:tenants)) i
  union all
  select (select n.next_at from schedules@{force_index=schedules_due, $sparse} n where n.waiting = i order by n.next_at limit 1)
  from unnest(json_value_array(:tenants)) i) x
union all
select 'recovery', min(case
    when exists (select 1 from queue_partitions@{force_index=queue_partitions_ready, $sparse} p where p.ready = q.id and p.class = 0) then 0
    else greatest(coalesce(div(q.tat - (q.rate_burst - 1) * q.rate_us + 999, 1000) - :now, 0),
      case when exists (select 1 from queue_partitions@{force_index=queue_partitions_ready, $sparse} p where p.ready = q.id) then 0
        else (select min(p.again_at) from queue_partitions@{force_index=queue_partitions_again, $sparse} p where p.queue = q.id and p.again_at is not null) - :now end) end)
from unnest(json_query_array(:queues)) n join queues@{force_index=queues_name} q on q.tenant = json_value(n, '$[0]') and q.name = json_value(n, '$[1]')
where q.pause is null and (q.concurrency is null
  or $running_in < q.concurrency);
