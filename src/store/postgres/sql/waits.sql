-- name: callback.find
-- read
-- The gate that a callback's token names, whichever run has it: the token is the right.
select r.tenant, r.id, g.name, g.status, g.callback, g.called from tape.gates g
cross join lateral (select r.tenant, r.id from tape.runs r where r.journal = g.run limit 1) r
where g.run = :run and g.pos = :pos and g.callback is not null;

-- name: callback.secret
-- read
-- Only for the holder of this fence.
select secret from tape.meta where exists (select 1 from tape.leases l where l.journal = :journal
  and l.tenant is not distinct from :tenant and l.kind = 'run' and l.token = :token and l.nonce = :nonce and not l.doomed and tape.on_timeline());

-- name: gate.answer
-- unfenced: with the note of an answer that must match; only the run's holder resolves the gate
-- writes: gates
-- The status as in gate.status: the lookup is by (run, pos).
update tape.gates set called = :note where run = :run and pos = :pos and status || '' = 'OPEN' and callback is null and called is null;

-- name: gate.approve
-- unfenced: with the note that approves it; only the run's holder resolves the gate
-- writes: gates
-- The status as in gate.status: the lookup is by (run, pos).
update tape.gates set approvals = approvals || :note || ',' where run = :run and pos = :pos and status || '' = 'OPEN';

-- name: gate.call
-- unfenced: with the note of the callback; only the run's holder resolves the gate
-- writes: gates
update tape.gates set called = :note where run = :run and pos = :pos and status || '' = 'OPEN' and callback is not null and called is null;

-- name: gate.create
-- fenced
-- writes: gates
-- The || as in run.assert_settled.
insert into tape.gates(run, pos, tenant, name, status, binds, payload, approvers, callback, opened_at)
select :run, :pos, r.tenant, :name, 'OPEN', :binds, :payload, :approvers, :callback, tape.now_ms() from tape.runs r where r.journal = :run and r.phase || '' = 'LIVE'
on conflict do nothing;

-- name: gate.list
-- read
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers, callback from tape.gates where tenant = :tenant and (opened_at, run, pos) > (:after_at, :after_run, :after_pos)
order by opened_at, run, pos limit :limit;

-- name: gate.open
-- read
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers, callback from tape.gates where tenant = :tenant and status = 'OPEN' and (opened_at, run, pos) > (:after_at, :after_run, :after_pos)
order by opened_at, run, pos limit :limit;

-- name: gate.run
-- read
-- IS NOT DISTINCT FROM keeps the planner from the order of the tenant's other gates.
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers, callback from tape.gates where run = :run and tenant is not distinct from :tenant and (not :open or status || '' = 'OPEN')
  and (opened_at, run, pos) > (:after_at, :after_run, :after_pos)
order by opened_at, pos limit :limit;

-- name: gate.status
-- fenced
-- writes: gates
-- A gate with approvers is resolved only by a signal that one of them has sent, a callback only by its token's.
-- Concatenated, the status keeps the partial index gates_open out of the plan: (run, pos) is the key, also of a table
-- known to be empty.
update tape.gates set status = :to, value = :value where run = :run and pos = :pos and status || '' = 'OPEN'
  and (approvers is null or :to <> 'RECEIVED' or position(',' || :note || ',' in approvals) > 0)
  and (callback is null or :to <> 'RECEIVED' or called::text = :note);

-- name: gate.wait_again
-- fenced
-- writes: gates
update tape.gates set called = null where run = :run and pos >= (select l.begins_pos from tape.leases l where l.journal = :run) and called = :note and callback is null;

-- name: gate.waiting
-- read
-- No gate of an earlier generation is open, and there may be a million.
select pos, binds, approvers, callback, called from tape.gates
where run = :run and pos >= (select l.begins_pos from tape.leases l where l.journal = :run) and name = :name and status = 'OPEN' order by pos;

-- name: gates.withdraw
-- fenced
-- writes: gates
-- The || as in run.assert_settled.
update tape.gates set status = 'WITHDRAWN' where run = :run and pos >= (select l.begins_pos from tape.leases l where l.journal = :run) and status || '' = 'OPEN';

-- name: meta.secret
-- read
select secret from tape.meta;

-- name: published.list
-- read
select p.name, p.value, p.seq, p.at from tape.published p
where p.run = (select r.journal from tape.runs r where r.tenant = :tenant and r.id = :id) and p.name > :above and (:name::text is null or p.name = :name)
order by p.name limit :limit;

-- name: published.put
-- fenced
-- writes: published
insert into tape.published(run, name, value, seq, at)
select :run::bigint, :name::text, :value, :seq, tape.now_ms()
where (select count(*) from tape.published p where p.run = :run and p.name <> :name) < :max
on conflict(run, name) do update set value = excluded.value, seq = excluded.seq, at = excluded.at;

-- name: reply.create
-- fenced
-- writes: replies
-- Once, and only to a signal that the inbox has.
insert into tape.replies(journal, n, body, at)
select :run, :note, :body, tape.now_ms() from tape.records r where r.journal = -:run::bigint and r.seq = :note and r.kind = 'signal.sent'
on conflict do nothing;

-- name: reply.find
-- read
select x.n, x.body, x.at from tape.replies x
where x.journal = (select r.journal from tape.runs r where r.tenant = :tenant and r.id = :id) and x.n = :n;

-- name: schedule.change
-- unfenced: a setting, written from outside a run; CAS on what its writer has read
-- writes: schedules
update tape.schedules set version = version + 1, spec = :spec, next_at = :next_at, paused = :paused
where tenant = :tenant and id = :id and version = :version and spec = :seen
returning tenant, id, version, spec, next_at, paused;

-- name: schedule.count
-- read
select count(*) as n from tape.schedules where tenant = :tenant;

-- name: schedule.delete
-- unfenced: a setting, written from outside a run
-- writes: schedules
delete from tape.schedules where tenant = :tenant and id = :id;

-- name: schedule.due
-- read
-- The time in a sub-select: see lease.due.
select tenant, id, version, spec, next_at, paused
  from tape.schedules where next_at <= (select tape.now_ms()) and not paused and tenant = :tenant order by next_at limit :limit;

-- name: schedule.find
-- read
select version from tape.schedules where tenant = :tenant and id = :id;

-- name: schedule.fire
-- unfenced: one conditional transaction; the version is the fence, so each firing starts its runs once. Never early.
-- writes: schedules
update tape.schedules set version = version + 1, next_at = :next_at, spec = coalesce(:spec, spec)
where tenant = :tenant and id = :id and version = :version and next_at <= tape.now_ms() and not paused
  and (:seen::text is null or spec = :seen);

-- name: schedule.list
-- read
select tenant, id, version, spec, next_at, paused
  from tape.schedules where tenant = :tenant and id > :above order by id limit :limit;

-- name: schedule.put
-- unfenced: a setting, written from outside a run; a new one under a quota only if it was admitted
-- writes: schedules
insert into tape.schedules(tenant, id, version, spec, next_at, paused)
select :tenant, :id, 1, :spec, :next_at, :paused
where :admitted or exists (select 1 from tape.schedules s where s.tenant = :tenant and s.id = :id)
  or not exists (select 1 from tape.quotas q where q.tenant in (:tenant, '') and q.schedules is not null)
on conflict(tenant, id) do update set version = schedules.version + 1, spec = excluded.spec, next_at = excluded.next_at,
  paused = excluded.paused
where not :fresh
returning tenant, id, version, spec, next_at, paused;

-- name: schedule.tenants
-- read
-- The tenants with waiting schedules, as in timer.tenants.
with recursive q(tenant) as (
  select min(tenant) from tape.schedules where next_at is not null and not paused
  union all
  select (select min(x.tenant) from tape.schedules x where x.next_at is not null and not x.paused and x.tenant > q.tenant)
  from q where q.tenant is not null)
select tenant from q where tenant is not null limit :limit;

-- name: signal.find
-- read
-- The run, and whether an open gate of this name is restricted: to approvers, or for tokens because it binds a call. The status as in gate.status.
select r.journal, r.root, exists(select 1 from tape.gates g
  where g.run = r.journal and g.name = :name and g.status || '' = 'OPEN' and (g.approvers is not null or (:by_token::boolean and g.binds is not null))) as restricted
from tape.runs r where r.tenant = :tenant and r.id = :id;

-- name: timer.create
-- fenced
-- writes: timers
insert into tape.timers(run, pos, purpose, tenant, status, due_at)
select :run, :pos, :purpose, r.tenant, 'SET', coalesce(:until, tape.now_ms() + :delay_ms) from tape.runs r where r.journal = :run
on conflict do nothing;

-- name: timer.due
-- read
-- The time in a sub-select: see lease.due.
select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at, tape.now_ms() - t.due_at as late_ms from tape.timers t
where t.status = 'SET' and t.tenant = :tenant and t.due_at <= (select tape.now_ms()) order by t.due_at limit :limit;

-- name: timer.fire
-- unfenced: firing is one conditional transaction, SET → FIRED plus the note; the condition is the fence. Never early.
-- writes: timers
-- The run's holder fires it without a note, together with its record and under its fence.
update tape.timers set status = 'FIRED'
where run = :run and pos = :pos and purpose = :purpose and tenant is not distinct from :tenant and status = 'SET' and due_at <= tape.now_ms();

-- name: timer.list
-- read
select run, pos, purpose, tenant, status, due_at from tape.timers where tenant = :tenant order by due_at, run, pos limit :limit;

-- name: timer.run
-- read
-- IS NOT DISTINCT FROM keeps the planner from the order of the tenant's other timers.
select run, pos, purpose, tenant, status, due_at from tape.timers where run = :run and tenant is not distinct from :tenant order by due_at, pos limit :limit;

-- name: timer.status
-- fenced
-- writes: timers
update tape.timers set status = :to where run = :run and pos = :pos and purpose = :purpose and status = 'SET';

-- name: timer.tenants
-- read
-- The tenants with timers set: one index lookup for each, never a scan.
with recursive q(tenant) as (
  select min(tenant) from tape.timers where status = 'SET'
  union all
  select (select min(x.tenant) from tape.timers x where x.status = 'SET' and x.tenant > q.tenant) from q where q.tenant is not null)
select tenant from q where tenant is not null limit :limit;

-- name: timers.cancel
-- fenced
-- writes: timers
-- The || as in run.assert_settled.
update tape.timers set status = 'CANCELLED' where run = :run and status || '' = 'SET';

-- name: timers.withdraw
-- fenced
-- writes: timers
-- Of the current generation. What the code did not set stays: the deadline, and the time of a redrive.
update tape.timers set status = 'CANCELLED'
where run = :run and pos >= (select l.begins_pos from tape.leases l where l.journal = :run) and status || '' = 'SET' and purpose not in ('deadline', 'redrive');

-- name: agenda
-- read
-- When each reactor next has work, in one query for all of them: the only query of an idle process. The row without a
-- name is the next lease to expire, whose item may belong to any reactor. Reads the first entry of each backlog, and
-- nothing of other backlogs, however long they are. A queue has work if it is not full and a key is ready, by its rates.
-- all_of: the tenant of which every workflow counts; its backlogs are found here, by one index lookup for each.
-- Every build counts there, too.
with recursive w(reactor, workflow) as (
  (select r.reactor, n.workflow from (select 'recovery' union all select 'recovery@' || b.build from tape.builds b
    where b.tenant = :all_of) r(reactor) cross join lateral (
    select l.workflow from tape.leases l where l.next_reactor = r.reactor and l.tenant = :all_of order by l.workflow limit 1) n)
  union all
  select w.reactor, n.workflow from w cross join lateral (
    select l.workflow from tape.leases l where l.next_reactor = w.reactor and l.tenant = :all_of and l.workflow > w.workflow
    order by l.workflow limit 1) n)
select q.backlog ->> 0 as reactor, min((select l.due_at from tape.leases l where l.next_reactor = q.backlog ->> 0 and l.tenant = q.backlog ->> 1
    and l.workflow = q.backlog ->> 2 and not l.paused order by l.due_at limit 1)) - tape.now_ms() as in_ms
from json_array_elements(:backlogs::json) q(backlog) group by 1
union all
select null, min(h.until) - tape.now_ms() from (
  select (select min(case when l.doomed then 0 else l.expires_at end) from tape.leases l
    where l.owner is not null and l.kind <> 'name' and l.tenant = q.backlog ->> 0 and l.workflow = q.backlog ->> 1
      and (l.build is null or l.build = :build)) as until
  from json_array_elements(:holders::json) q(backlog)) h
union all
select 'recovery', min((select l.due_at from tape.leases l where l.next_reactor = x.reactor and l.tenant = :all_of
    and l.workflow = x.workflow and not l.paused order by l.due_at limit 1)) - tape.now_ms()
from (select w.reactor, w.workflow from w limit :limit) x
union all
select null, min(case when l.doomed then 0 else l.expires_at end) - tape.now_ms() from tape.leases l
where l.owner is not null and l.kind <> 'name' and l.tenant = :all_of
union all
select 'timers', min(x.due_at) - tape.now_ms() from (
  select (select due_at from tape.timers where status = 'SET' and tenant = i.tenant order by due_at limit 1) as due_at
  from json_array_elements_text(:tenants::json) i(tenant)
  union all
  select (select next_at from tape.schedules where next_at is not null and not paused and tenant = i.tenant order by next_at limit 1)
  from json_array_elements_text(:tenants::json) i(tenant)) x
union all
select 'recovery', min(case
    when exists (select 1 from tape.queue_partitions p where p.queue = q.id and p.ready and p.class = 0) then 0
    else case when exists (select 1 from tape.queue_partitions p where p.queue = q.id and p.ready) then greatest(0, q.rate_ms)
      when a.again_ms is not null then greatest(a.again_ms, coalesce(q.rate_ms, 0)) end end)
from json_array_elements(:queues::json) n(queue)
cross join lateral (select q.id, q.pause, q.concurrency,
  (q.tat - (q.rate_burst - 1) * q.rate_us + 999) / 1000 - tape.now_ms() as rate_ms
  from tape.queues q where q.tenant = n.queue ->> 0 and q.name = n.queue ->> 1 limit 1) q
cross join lateral (select (select p.again_at from tape.queue_partitions p where p.queue = q.id and p.again_at is not null
  order by p.again_at limit 1) - tape.now_ms() as again_ms) a
where q.pause is null and (q.concurrency is null
  or (select coalesce(sum(p.running), 0) from tape.queue_partitions p where p.queue = q.id and p.busy) < q.concurrency);
