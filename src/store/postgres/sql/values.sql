-- name: budget.charge
-- fenced
-- writes: budgets
-- No cap here: the purchase has happened, and its record must not be rejected. The next reservation is. It counts up to
-- the largest number that every reader can hold (2^53 - 1), and stays there. A unit that was not reserved is counted, too.
insert into tape.budgets(run, unit, cap, spent, tenant)
select :run, :unit, -1, least(:spent, 9007199254740991), o.tenant from tape.runs o
where o.journal = :run and o.tenant is not distinct from :tenant and o.root = (select b.root from tape.runs b where b.journal = :by)
  and ((select count(*) from tape.budgets u where u.run = :run) < :max and :reserved::bigint = 0
    or exists (select 1 from tape.budgets u where u.run = :run and u.unit = :unit))
on conflict(run, unit) do update set reserved = tape.budgets.reserved - :reserved, spent = least(tape.budgets.spent + :spent, 9007199254740991)
where tape.budgets.reserved >= :reserved;

-- name: budget.create
-- unfenced: written with the run it belongs to
-- writes: budgets
insert into tape.budgets(run, unit, cap, tenant) select :run, :unit, :cap, r.tenant from tape.runs r where r.journal = :run;

-- name: budget.list
-- read
select run, unit, cap, reserved, spent from tape.budgets where run = :run order by unit;

-- name: budget.open
-- read
-- The newest caps of the tenant's runs, with whether each run has ended.
select b.run, b.unit, b.cap, b.reserved, b.spent, r.id as run_id, r.workflow, r.phase, l.owner as lease_owner, l.next_reactor as lease_next_reactor, r.ended_at, $slot_state
from (select run, unit, cap, reserved, spent from tape.budgets where tenant = :tenant order by run desc limit :limit) b
  cross join lateral (select r.id, r.workflow, r.phase, r.ended_at from tape.runs r where r.journal = b.run offset 0) r
  cross join lateral (select l.journal, l.owner, l.next_reactor, l.queue from tape.leases l where l.journal = b.run offset 0) l;

-- name: budget.others
-- read
-- How many units the tree spends, if this one is not among them. Only for runs of the tree.
select count(*) as others from tape.budgets u join tape.runs o on o.journal = u.run
where u.run = :run and o.tenant = :tenant and o.root = (select b.root from tape.runs b where b.journal = :by)
  and not exists (select 1 from tape.budgets k where k.run = :run and k.unit = :unit);

-- name: budget.reserve
-- fenced
-- writes: budgets
-- The condition is the cap: parallel calls queue on this row and cannot exceed it. Only runs of the same tree draw. A unit
-- without a cap (-1) is counted. Runs that reserve new units at the same time may exceed their number by one each.
insert into tape.budgets(run, unit, cap, reserved, tenant)
select :run, :unit, -1, :amount, o.tenant from tape.runs o
where o.journal = :run and o.tenant is not distinct from :tenant and o.root = (select b.root from tape.runs b where b.journal = :by)
  and ((select count(*) from tape.budgets u where u.run = :run) < :max
    or exists (select 1 from tape.budgets u where u.run = :run and u.unit = :unit))
on conflict(run, unit) do update set reserved = tape.budgets.reserved + :amount
where tape.budgets.reserved + tape.budgets.spent + :amount <= case when tape.budgets.cap < 0 then 9007199254740991 else tape.budgets.cap end;

-- name: business_key.claim
-- fenced
-- writes: business_keys
insert into tape.business_keys(tenant, scope, business_key, run, pos)
select r.tenant, :scope, :business_key, :run, :pos from tape.runs r where r.journal = :run
on conflict do nothing;

-- name: business_key.drop
-- fenced
-- writes: business_keys
delete from tape.business_keys where run = :run and pos = :pos;

-- name: business_key.find
-- read
select c.tenant, c.scope, c.business_key, c.run, c.pos,
  r.id as run_id from tape.business_keys c join tape.runs r on r.journal = c.run
where c.tenant = :tenant and c.scope = :scope and c.business_key = :business_key;

-- name: business_key.hold
-- unfenced: before the run that claims it, in one transaction: a start that finds it taken has written nothing
-- writes: business_keys
insert into tape.business_keys(tenant, scope, business_key, run, pos) values (:tenant, :scope, :business_key, :run, :pos)
on conflict do nothing;

-- name: business_key.replace
-- unfenced: by a new run, in the transaction that asks the previous one to stop
-- writes: business_keys
insert into tape.business_keys(tenant, scope, business_key, run, pos) values (:tenant, :scope, :business_key, :run, :pos)
on conflict(tenant, scope, business_key) do update set run = excluded.run, pos = excluded.pos;

-- name: business_keys.sweep
-- fenced
-- writes: business_keys
delete from tape.business_keys where run = :run
  and exists (select 1 from tape.effects e where e.run = business_keys.run and e.pos = business_keys.pos and e.sub = 0 and e.status = 'WITHDRAWN');

-- name: quota.create
-- unfenced: a row to count in, for a tenant under the default limits
-- writes: quotas
insert into tape.quotas(tenant) values (:tenant) on conflict do nothing;

-- name: quota.flag
-- unfenced: runs started before their tenant had a limit are counted from now on
-- writes: runs
update tape.runs set counted = true
where journal > :after and journal <= :until and ended_at is null and not counted
  and exists (select 1 from tape.quotas q where q.tenant in (runs.tenant, '') and (q.runs is not null or q.bytes is not null));

-- name: quota.get
-- read
-- Also for a tenant without a row, because nothing was set or counted for it.
select x.tenant, q.runs, q.bytes, q.schedules, q.streams, q.bytes_used, d.runs as default_runs, d.bytes as default_bytes, d.schedules as default_schedules, d.streams as default_streams, d.metered,
  (select count(*) from tape.runs r where r.tenant = x.tenant and r.counted and r.ended_at is null) as open_runs,
  (select count(*) from tape.schedules s where s.tenant = x.tenant) as all_schedules
from (select cast(:tenant as text) as tenant) x left join tape.quotas q on q.tenant = x.tenant left join tape.quotas d on d.tenant = '';

-- name: quota.list
-- read
-- By tenant; the default comes first.
select q.tenant, q.runs, q.bytes, q.schedules, q.streams, q.bytes_used, d.runs as default_runs, d.bytes as default_bytes, d.schedules as default_schedules, d.streams as default_streams, d.metered,
  (select count(*) from tape.runs r where r.tenant = q.tenant collate "default" and r.counted and r.ended_at is null) as open_runs,
  (select count(*) from tape.schedules s where s.tenant = q.tenant collate "default") as all_schedules
from tape.quotas q left join tape.quotas d on d.tenant = ''
where q.tenant >= :above and (:above = '' or q.tenant > :above) order by q.tenant limit :limit;

-- name: quota.lock
-- unfenced: starts of a tenant with a quota queue here until the previous start is committed
select q.tenant, q.runs, q.bytes, q.schedules, q.streams, q.runs_used, q.runs_at, q.bytes_used, d.runs as default_runs, d.bytes as default_bytes, d.schedules as default_schedules, d.streams as default_streams, d.metered, d.metered_at, tape.now_ms() as at
from tape.quotas q left join tape.quotas d on d.tenant = ''
where q.tenant = :tenant for update of q;

-- name: quota.open
-- read
-- By the index of counted runs, which is empty for tenants without a limit.
select count(*) as n from tape.runs where tenant = :tenant and counted and ended_at is null;

-- name: quota.range
-- read
-- The next range of runs, by journal number.
select max(x.journal) as until from (select journal from tape.runs where journal > :after order by journal limit :limit) x;

-- name: quota.recount
-- unfenced: the next start counts first, because more runs count now than before
-- writes: quotas
update tape.quotas set runs_at = 0 where :tenant = '' or tenant = :tenant;

-- name: quota.seen
-- read
select q.tenant, q.runs, q.bytes, q.schedules, q.streams, q.runs_used, q.runs_at, q.bytes_used, d.runs as default_runs, d.bytes as default_bytes, d.schedules as default_schedules, d.streams as default_streams, d.metered, d.metered_at, tape.now_ms() as at
from tape.quotas q left join tape.quotas d on d.tenant = ''
where q.tenant = :tenant;

-- name: quota.set
-- unfenced: a setting, written by an operator under the row's lock
-- writes: quotas
update tape.quotas set runs = :runs, bytes = :bytes, schedules = :schedules, streams = :streams where tenant = :tenant;

-- name: quota.use
-- unfenced: under the row's lock; the counted runs are written in the same transaction
-- writes: quotas
update tape.quotas set runs_used = :used, runs_at = case when :fresh then tape.now_ms() else runs_at end where tenant = :tenant;

-- name: usage.add
-- unfenced: under the meter's lock
-- writes: quotas
insert into tape.quotas(tenant, bytes_used) values (:tenant, :bytes)
on conflict(tenant) do update set bytes_used = quotas.bytes_used + excluded.bytes_used;

-- name: usage.begin
-- unfenced: from the first record on
-- writes: quotas
update tape.quotas set metered = 0 where tenant = '' and metered is null;

-- name: usage.edge
-- read
-- Where the next measurement ends: whole transactions, none that could still be written to. See feed.page.
with w as materialized (
  select r.stamp from tape.records r
  where r.stamp > :after
    and r.stamp < tape.feed_horizon()
  order by r.stamp limit :limit)
select max(stamp) as edge, case when count(*) < :limit then max(stamp) end as last from w having count(*) > 0;

-- name: usage.lock
-- unfenced: one process at a time; others leave the measurement to it, so none waits while it holds a row
select metered from tape.quotas where tenant = '' and metered is not null for update skip locked;

-- name: usage.moved
-- unfenced: under the same lock
-- writes: quotas
update tape.quotas set metered = :edge, metered_at = case when :fresh then tape.now_ms() else metered_at end where tenant = '';

-- name: usage.sum
-- read
-- The size of a body is known without reading it. One lookup per record: a join would be planned by guesses.
select l.tenant, sum(octet_length(r.body))::bigint as bytes
from tape.records r cross join lateral (select l.tenant from tape.leases l where l.journal = abs(r.journal) limit 1) l
where r.stamp > :after and r.stamp <= :edge group by l.tenant;

-- name: value.forget
-- unfenced: history older than is kept for watchers
-- writes: val_log
delete from tape.val_log where key = :key and version <= :through
  and tenant = coalesce(:tenant, (select s.tenant from tape.leases s where s.journal = :source));

-- name: value.get
-- read
select tenant, key, version, value, at from tape.vals where tenant = :tenant and key = :key;

-- name: value.history
-- read
select tenant, key, version, value, at
  from tape.val_log where tenant = :tenant and key = :key and version > :after order by version limit :limit;

-- name: value.list
-- read
-- By key, from :lower on and before :upper; a page continues after :above. The index has the order of the database, so the
-- prefix is compared row by row.
select tenant, key, version, value, at
  from tape.vals where tenant = :tenant and key collate "C" >= :lower and key collate "C" < :upper and key > :above and value is not null
order by key limit :limit;

-- name: value.list_down
-- read
-- The same from the last key before :below down.
select tenant, key, version, value, at
  from tape.vals where tenant = :tenant and key collate "C" >= :lower and key collate "C" < :upper and key < :below and value is not null
order by key desc limit :limit;

-- name: value.log
-- unfenced: written with value.put, for watchers
-- writes: val_log
insert into tape.val_log(tenant, key, version, value, at)
values (coalesce(:tenant, (select s.tenant from tape.leases s where s.journal = :source)), :key, :version, :value, tape.now_ms());

-- name: value.put
-- unfenced: CAS on the version, which never decreases, even across a delete; from inside a run the append is fenced
-- writes: vals
insert into tape.vals(tenant, key, version, value, at)
select x.tenant, :key, :version, :value, tape.now_ms()
from (select coalesce(:tenant, (select s.tenant from tape.leases s where s.journal = :source)) as tenant) x
where :version::bigint = 1 or exists (select 1 from tape.vals v where v.tenant = x.tenant and v.key = :key)
on conflict(tenant, key) do update set version = excluded.version, value = excluded.value, at = excluded.at
where vals.version = excluded.version - 1;
