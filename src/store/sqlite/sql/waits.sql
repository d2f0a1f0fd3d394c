-- name: callback.find
-- read
-- The gate that a callback's token names, whichever run has it: the token is the right.
select r.tenant, r.id, g.name, g.status, g.callback, g.called from gates g join runs r on r.journal = g.run
where g.run = :run and g.pos = :pos and g.callback is not null;

-- name: callback.secret
-- read
-- Only for the holder of this fence.
select secret from meta where exists (select 1 from leases l where l.journal = :journal and l.tenant = :tenant
  and l.kind = 'run' and l.token = :token and l.nonce = :nonce and l.doomed = 0);

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
insert into gates(run, pos, tenant, name, status, binds, payload, approvers, callback, opened_at)
select :run, :pos, r.tenant, :name, 'OPEN', :binds, :payload, :approvers, :callback, :at from runs r where r.journal = :run and r.phase = 'LIVE'
on conflict do nothing;

-- name: gate.list
-- read
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers, callback
  from gates where tenant = :tenant and (opened_at, run, pos) > (:after_at, :after_run, :after_pos)
order by opened_at, run, pos limit :limit;

-- name: gate.open
-- read
-- The index is named because the planner rates the index of all gates as equal, but most gates are closed.
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers, callback
  from gates indexed by gates_open where tenant = :tenant and status = 'OPEN' and (opened_at, run, pos) > (:after_at, :after_run, :after_pos)
order by opened_at, run, pos limit :limit;

-- name: gate.run
-- read
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers, callback
  from gates where run = :run and +tenant = :tenant and (not :open or status = 'OPEN')
  and (opened_at, run, pos) > (:after_at, :after_run, :after_pos)
order by opened_at, run, pos limit :limit;

-- name: gate.status
-- fenced
-- writes: gates
-- A gate with approvers is resolved only by a signal that one of them has sent, a callback only by its token's.
update gates set status = :to, value = :value where run = :run and pos = :pos and status = 'OPEN'
  and (approvers is null or :to <> 'RECEIVED' or instr(approvals, ',' || :note || ',') > 0)
  and (callback is null or :to <> 'RECEIVED' or called = cast(:note as integer));

-- name: gate.wait_again
-- fenced
-- writes: gates
update gates set called = null where run = :run and pos >= (select l.begins_pos from leases l where l.journal = :run) and called = :note and callback is null;

-- name: gate.waiting
-- read
-- No gate of an earlier generation is open, and there may be a million.
select pos, binds, approvers, callback, called from gates
where run = :run and pos >= (select l.begins_pos from leases l where l.journal = :run) and name = :name and status = 'OPEN' order by pos;

-- name: gates.withdraw
-- fenced
-- writes: gates
update gates set status = 'WITHDRAWN' where run = :run and pos >= (select l.begins_pos from leases l where l.journal = :run) and status = 'OPEN';

-- name: meta.secret
-- read
select secret from meta;

-- name: published.list
-- read
select p.name, p.value, p.seq, p.at from published p
where p.run = (select r.journal from runs r where r.tenant = :tenant and r.id = :id) and p.name > :above and (:name is null or p.name = :name)
order by p.name limit :limit;

-- name: published.put
-- fenced
-- writes: published
insert into published(run, name, value, seq, at)
select :run, :name, :value, :seq, :at
where (select count(*) from published p where p.run = :run and p.name <> :name) < :max
on conflict(run, name) do update set value = excluded.value, seq = excluded.seq, at = excluded.at;

-- name: reply.create
-- fenced
-- writes: replies
-- Once, and only to a signal that the inbox has.
insert into replies(journal, n, body, at)
select :run, :note, :body, :at from records r where r.journal = -:run and r.seq = :note and r.kind = 'signal.sent'
on conflict do nothing;

-- name: reply.find
-- read
select x.n, x.body, x.at from replies x
where x.journal = (select r.journal from runs r where r.tenant = :tenant and r.id = :id) and x.n = :n;

-- name: schedule.change
-- unfenced: a setting, written from outside a run; CAS on what its writer has read
-- writes: schedules
update schedules set version = version + 1, spec = :spec, next_at = :next_at, paused = :paused
where tenant = :tenant and id = :id and version = :version and spec = :seen
returning tenant, id, version, spec, next_at, paused;

-- name: schedule.count
-- read
select count(*) as n from schedules where tenant = :tenant;

-- name: schedule.delete
-- unfenced: a setting, written from outside a run
-- writes: schedules
delete from schedules where tenant = :tenant and id = :id;

-- name: schedule.due
-- read
select tenant, id, version, spec, next_at, paused
  from schedules where next_at <= :at and paused = 0 and tenant = :tenant order by next_at limit :limit;

-- name: schedule.find
-- read
select version from schedules where tenant = :tenant and id = :id;

-- name: schedule.fire
-- unfenced: one conditional transaction; the version is the fence, so each firing starts its runs once. Never early.
-- writes: schedules
update schedules set version = version + 1, next_at = :next_at, spec = coalesce(:spec, spec)
where tenant = :tenant and id = :id and version = :version and next_at <= :at and paused = 0
  and (:seen is null or spec = :seen);

-- name: schedule.list
-- read
select tenant, id, version, spec, next_at, paused from schedules where tenant = :tenant and id > :above order by id limit :limit;

-- name: schedule.put
-- unfenced: a setting, written from outside a run; a new one under a quota only if it was admitted
-- writes: schedules
insert into schedules(tenant, id, version, spec, next_at, paused)
select :tenant, :id, 1, :spec, :next_at, :paused
where :admitted or exists (select 1 from schedules s where s.tenant = :tenant and s.id = :id)
  or not exists (select 1 from quotas q where q.tenant in (:tenant, '') and q.schedules is not null)
on conflict(tenant, id) do update set version = schedules.version + 1, spec = excluded.spec, next_at = excluded.next_at,
  paused = excluded.paused
where not :fresh
returning tenant, id, version, spec, next_at, paused;

-- name: schedule.tenants
-- read
-- The tenants with waiting schedules, as in timer.tenants.
with recursive q(tenant) as (
  select min(tenant) from schedules where next_at is not null and paused = 0
  union all
  select (select min(x.tenant) from schedules x where x.next_at is not null and x.paused = 0 and x.tenant > q.tenant)
  from q where q.tenant is not null
  limit :limit)
select tenant from q where tenant is not null;

-- name: signal.find
-- read
-- The run, and whether an open gate of this name is restricted: to approvers, or for tokens because it binds a call.
select r.journal, r.root, exists(select 1 from gates g
  where g.run = r.journal and g.name = :name and g.status = 'OPEN' and (g.approvers is not null or (:by_token and g.binds is not null))) as restricted
from runs r where r.tenant = :tenant and r.id = :id;

-- name: timer.create
-- fenced
-- writes: timers
insert into timers(run, pos, purpose, tenant, status, due_at, steady)
select :run, :pos, :purpose, r.tenant, 'SET', coalesce(:until, :steady + :delay_ms), :until is null from runs r where r.journal = :run
on conflict do nothing;

-- name: timer.due
-- read
-- Each kind by its own clock, and within it in the order of the index, so that LIMIT ends the scan early.
select x.run, x.pos, x.purpose, x.tenant, x.status, x.due_at, x.late_ms from (
  select * from (select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at, :at - t.due_at as late_ms from timers t
    where t.status = 'SET' and t.tenant = :tenant and t.steady = 0 and t.due_at <= :at order by t.due_at limit :limit)
  union all
  select * from (select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at + :at - :steady, :steady - t.due_at from timers t
    where t.status = 'SET' and t.tenant = :tenant and t.steady = 1 and t.due_at <= :steady order by t.due_at limit :limit)) x
order by x.late_ms desc, x.run, x.pos limit :limit;

-- name: timer.fire
-- unfenced: firing is one conditional transaction, SET → FIRED plus the note; the condition is the fence. Never early.
-- writes: timers
-- The run's holder fires it without a note, together with its record and under its fence.
update timers set status = 'FIRED'
where run = :run and pos = :pos and purpose = :purpose and tenant = :tenant and status = 'SET' and due_at <= case steady when 1 then :steady else :at end;

-- name: timer.list
-- read
-- Each kind by its own clock, and within it in the order of the index, so that LIMIT ends the scan early.
select * from (
  select * from (select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at from timers t indexed by timers_tenant
    where t.tenant = :tenant and t.steady = 0 order by t.due_at, t.run, t.pos limit :limit)
  union all
  select * from (select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at + :at - :steady from timers t indexed by timers_tenant
    where t.tenant = :tenant and t.steady = 1 order by t.due_at, t.run, t.pos limit :limit)) x
order by x.due_at, x.run, x.pos limit :limit;

-- name: timer.run
-- read
select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at + case t.steady when 1 then :at - :steady else 0 end as due_at
from timers t where t.run = :run and +t.tenant = :tenant order by 6, t.pos limit :limit;

-- name: timer.status
-- fenced
-- writes: timers
update timers set status = :to where run = :run and pos = :pos and purpose = :purpose and status = 'SET';

-- name: timer.tenants
-- read
-- The tenants with timers set: one index lookup for each, never a scan.
with recursive q(tenant) as (
  select min(tenant) from timers where status = 'SET'
  union all
  select (select min(x.tenant) from timers x where x.status = 'SET' and x.tenant > q.tenant) from q where q.tenant is not null
  limit :limit)
select tenant from q where tenant is not null;

-- name: timers.cancel
-- fenced
-- writes: timers
update timers set status = 'CANCELLED' where run = :run and status = 'SET';

-- name: timers.withdraw
-- fenced
-- writes: timers
-- Of the current generation. What the code did not set stays: the deadline, and the time of a redrive.
update timers set status = 'CANCELLED'
where run = :run and pos >= (select l.begins_pos from leases l where l.journal = :run) and status = 'SET' and purpose not in ('deadline', 'redrive');

-- name: agenda
-- read
-- When each reactor next has work, in one query for all of them: the only query of an idle process. The row without a
-- name is the next lease to expire, whose item may belong to any reactor. Reads the first entry of each backlog, and
-- nothing of other backlogs, however long they are. A queue has work if it is not full and a key is ready, by its rates.
-- all_of: the tenant of which every workflow counts; its backlogs are found here, by one index lookup for each.
-- Every build counts there, too.
with recursive w(reactor, journal) as (
  select b.reactor, (select l.journal from leases l indexed by leases_due where l.next_reactor = b.reactor and l.tenant = :all_of
    order by l.workflow limit 1)
  from (select 'recovery' as reactor union all select 'recovery@' || build from builds where tenant = :all_of) b
  union all
  select w.reactor, (select l.journal from leases l indexed by leases_due where l.next_reactor = w.reactor and l.tenant = x.tenant
    and l.workflow > x.workflow order by l.workflow limit 1)
  from w cross join leases x on x.journal = w.journal
  limit :limit)
select q.value ->> 0 as reactor, min((select l.due_at from leases l where l.next_reactor = q.value ->> 0 and l.tenant = q.value ->> 1
    and l.workflow = q.value ->> 2 and l.paused = 0 order by l.due_at limit 1)) - :now as in_ms
from json_each(:backlogs) q group by 1
union all
select null, min(case when l.doomed = 1 then 0 else l.expires_at end) - :now
from json_each(:holders) h cross join leases l indexed by leases_held
where l.owner is not null and l.kind <> 'name' and l.tenant = h.value ->> 0 and l.workflow = h.value ->> 1
  and (l.build is null or l.build = :build)
union all
select 'recovery', min((select l.due_at from leases l indexed by leases_due where l.next_reactor = w.reactor and l.tenant = x.tenant
    and l.workflow = x.workflow and l.paused = 0 order by l.due_at limit 1)) - :now
from w cross join leases x on x.journal = w.journal
union all
select null, min(case when l.doomed = 1 then 0 else l.expires_at end) - :now from leases l indexed by leases_held
where l.owner is not null and l.kind <> 'name' and l.tenant = :all_of
union all
select 'timers', min(x.in_ms) from (
  select (select due_at from timers where status = 'SET' and tenant = i.value and steady = 0 order by due_at limit 1) - :at as in_ms
  from json_each(:tenants) i
  union all
  select (select due_at from timers where status = 'SET' and tenant = i.value and steady = 1 order by due_at limit 1) - :steady
  from json_each(:tenants) i
  union all
  select (select next_at from schedules where next_at is not null and paused = 0 and tenant = i.value order by next_at limit 1) - :at
  from json_each(:tenants) i) x
union all
select 'recovery', min(case
    when exists (select 1 from queue_partitions p where p.queue = q.id and p.ready = 1 and p.class = 0) then 0
    else max(coalesce((q.tat - (q.rate_burst - 1) * q.rate_us + 999) / 1000 - :steady, 0),
      case when exists (select 1 from queue_partitions p where p.queue = q.id and p.ready = 1) then 0
        else (select min(p.again_at) from queue_partitions p where p.queue = q.id and p.again_at is not null) - :steady end) end)
from json_each(:queues) n cross join queues q on q.tenant = n.value ->> 0 and q.name = n.value ->> 1
where q.pause is null and (q.concurrency is null
  or (select coalesce(sum(p.running), 0) from queue_partitions p where p.queue = q.id and p.busy = 1) < q.concurrency);
