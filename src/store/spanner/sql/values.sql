-- macro: $quota_columns
-- The limits of the tenant `q` beside those of every tenant, `d`.
q.runs, q.bytes, q.schedules, q.streams, q.bytes_used, d.runs as default_runs, d.bytes as default_bytes, d.schedules as default_schedules, d.streams as default_streams, d.metered;

-- macro: $tenant_of
-- The tenant that a writer names, or that of its journal.
coalesce(:tenant, (select s.tenant from leases s where s.journal = :source));

-- macro: $in_tree
-- Whether the run `o`, which has the budget, is of this tenant and in the tree of the run that spends.
o.journal = :run and o.tenant = :tenant and o.root = (select b.root from runs b where b.journal = :by);

-- name: budget.charge
-- fenced
-- writes: budgets
-- No cap here: the purchase has happened, and its record must not be rejected. The next reservation is. It counts up to
-- the largest number that every reader can hold (2^53 - 1), and stays there. A unit that was not reserved is counted, too.
insert or update into budgets(run, unit, cap, reserved, spent, tenant)
select o.journal, :unit, coalesce(v.cap, -1), coalesce(v.reserved - :reserved, 0), least(coalesce(v.spent, 0) + :spent, 9007199254740991), o.tenant
from runs o left join budgets v on v.run = o.journal and v.unit = :unit
where $in_tree
  and case when v.unit is null then (select count(*) from budgets u where u.run = :run) < :max and :reserved = 0 else v.reserved >= :reserved end;

-- name: budget.create
-- unfenced: written with the run it belongs to
-- writes: budgets
insert into budgets(run, unit, cap, tenant) select :run, :unit, :cap, r.tenant from runs r where r.journal = :run;

-- name: budget.list
-- read
select run, unit, cap, reserved, spent from budgets where run = :run order by unit;

-- name: budget.open
-- read
-- The newest caps of the tenant's runs, with whether each run has ended.
select b.run, b.unit, b.cap, b.reserved, b.spent, r.id as run_id, r.workflow, r.phase, l.owner as lease_owner, l.next_reactor as lease_next_reactor, r.ended_at, $slot_state
from (select x.run, x.unit, x.cap, x.reserved, x.spent, x.born from $shards s
    cross join unnest(array(select as struct b.run, b.unit, b.cap, b.reserved, b.spent, b.born from budgets@{force_index=budgets_tenant} b
      where b.tenant = :tenant and b.shard = s order by b.born desc limit :limit)) x
    order by x.born desc limit :limit) b
  join runs r on r.journal = b.run join leases l on l.journal = b.run
order by b.born desc, b.unit;

-- name: budget.others
-- read
-- How many units the tree spends, if this one is not among them. Only for runs of the tree.
select count(*) as others from budgets u join runs o on o.journal = u.run
where u.run = :run and $in_tree
  and not exists (select 1 from budgets k where k.run = :run and k.unit = :unit);

-- name: budget.reserve
-- fenced
-- writes: budgets
-- The condition is the cap: parallel calls queue on this row and cannot exceed it. Only runs of the same tree draw. A unit
-- without a cap (-1) is counted.
insert or update into budgets(run, unit, cap, reserved, spent, tenant)
select o.journal, :unit, coalesce(v.cap, -1), coalesce(v.reserved, 0) + :amount, coalesce(v.spent, 0), o.tenant
from runs o left join budgets v on v.run = o.journal and v.unit = :unit
where $in_tree
  and case when v.unit is null then (select count(*) from budgets u where u.run = :run) < :max
    else v.reserved + v.spent + :amount <= case when v.cap < 0 then 9007199254740991 else v.cap end end;

-- name: business_key.claim
-- fenced
-- writes: business_keys
insert or ignore into business_keys(tenant, scope, business_key, run, pos)
select r.tenant, :scope, :business_key, :run, :pos from runs r where r.journal = :run;

-- name: business_key.drop
-- fenced
-- writes: business_keys
delete from business_keys where run = :run and pos = :pos;

-- name: business_key.find
-- read
select c.tenant, c.scope, c.business_key, c.run, c.pos, r.id as run_id from business_keys c join runs r on r.journal = c.run
where c.tenant = :tenant and c.scope = :scope and c.business_key = :business_key;

-- name: business_key.hold
-- unfenced: before the run that claims it, in one transaction: a start that finds it taken has written nothing
-- writes: business_keys
insert or ignore into business_keys(tenant, scope, business_key, run, pos) values (:tenant, :scope, :business_key, :run, :pos);

-- name: business_key.replace
-- unfenced: by a new run, in the transaction that asks the previous one to stop
-- writes: business_keys
insert or update into business_keys(tenant, scope, business_key, run, pos) values (:tenant, :scope, :business_key, :run, :pos);

-- name: business_keys.sweep
-- fenced
-- writes: business_keys
delete from business_keys where run = :run
  and exists (select 1 from effects e where e.run = business_keys.run and e.pos = business_keys.pos and e.sub = 0 and e.status = 'WITHDRAWN');

-- name: quota.create
-- unfenced: a row to count in, for a tenant under the default limits
-- writes: quotas
insert or ignore into quotas(tenant) values (:tenant);

-- name: quota.flag
-- unfenced: runs started before their tenant had a limit are counted from now on
-- writes: runs
-- In the order of the keys, as quota.range.
update runs r set counted = true
where r.journal > bit_reverse(:after, true) and r.journal <= bit_reverse(:until, true) and r.ended_at is null and not r.counted
  and exists (select 1 from quotas q where q.tenant in (r.tenant, '') and (q.runs is not null or q.bytes is not null));

-- name: quota.get
-- read
-- Also for a tenant without a row, because nothing was set or counted for it.
select x.tenant, $quota_columns,
  (select count(*) from runs@{force_index=runs_counted, $sparse} r where r.counts = x.tenant) as open_runs,
  (select count(*) from schedules s where s.tenant = x.tenant) as all_schedules
from (select :tenant as tenant) x left join quotas q on q.tenant = x.tenant left join quotas d on d.tenant = '';

-- name: quota.list
-- read
-- By tenant; the default comes first.
select q.tenant, $quota_columns,
  (select count(*) from runs@{force_index=runs_counted, $sparse} r where r.counts = q.tenant) as open_runs,
  (select count(*) from schedules s where s.tenant = q.tenant) as all_schedules
from quotas q left join quotas d on d.tenant = ''
where q.tenant >= :above and (:above = '' or q.tenant > :above) order by q.tenant limit :limit;

-- name: quota.lock
-- read
-- What is read stays locked until our commit.
select q.tenant, $quota_columns, q.runs_used, q.runs_at, d.metered_at, :at as `at`
from quotas q left join quotas d on d.tenant = ''
where q.tenant = :tenant;

-- name: quota.open
-- read
-- By the index of counted runs, which is empty for tenants without a limit.
select count(*) as n from runs@{force_index=runs_counted, $sparse} r where r.counts = :tenant;

-- name: quota.range
-- read
-- The next range of runs, in the order of the keys.
select bit_reverse(max(x.journal), true) as until from (select journal from runs where journal > bit_reverse(:after, true) order by journal limit :limit) x;

-- name: quota.recount
-- unfenced: the next start counts first, because more runs count now than before
-- writes: quotas
update quotas set runs_at = 0 where :tenant = '' or tenant = :tenant;

-- name: quota.seen
-- read
select q.tenant, $quota_columns, q.runs_used, q.runs_at, d.metered_at, :at as `at`
from quotas q left join quotas d on d.tenant = ''
where q.tenant = :tenant;

-- name: quota.set
-- unfenced: a setting, written by an operator under the row's lock
-- writes: quotas
update quotas set runs = :runs, bytes = :bytes, schedules = :schedules, streams = :streams where tenant = :tenant;

-- name: quota.use
-- unfenced: under the row's lock; the counted runs are written in the same transaction
-- writes: quotas
update quotas set runs_used = :used, runs_at = case when :fresh then :at else runs_at end where tenant = :tenant;

-- name: usage.add
-- unfenced: under the meter's lock
-- writes: quotas
insert or update into quotas(tenant, runs, bytes, schedules, streams, metered, bytes_used, runs_used, runs_at, metered_at)
select x.tenant, v.runs, v.bytes, v.schedules, v.streams, v.metered, coalesce(v.bytes_used, 0) + :bytes, coalesce(v.runs_used, 0),
  coalesce(v.runs_at, 0), coalesce(v.metered_at, 0) from (select :tenant as tenant) x left join quotas v on v.tenant = x.tenant;

-- name: usage.begin
-- unfenced: from the first record on
-- writes: quotas
update quotas set metered = 0 where tenant = '' and metered is null;

-- name: usage.edge
-- read
-- Where the next measurement ends: whole transactions. Nothing can be committed before it any more: see feed.page.
with w as (
  select x as stamp from $shards s cross join unnest(array(select $stamp from records@{force_index=records_feed} r
    where r.shard = s and r.committed > timestamp_micros(:after) order by r.committed limit :limit)) x
  order by x limit :limit)
select max(w.stamp) as edge, case when count(*) < :limit then max(w.stamp) end as last from w having count(*) > 0;

-- name: usage.lock
-- read
select metered from quotas where tenant = '' and metered is not null;

-- name: usage.moved
-- unfenced: under the same lock
-- writes: quotas
update quotas set metered = :edge, metered_at = case when :fresh then :at else metered_at end where tenant = '';

-- name: usage.sum
-- read
select l.tenant, sum(byte_length(r.body)) as bytes
from $shards s join records@{force_index=records_feed} r on r.shard = s join leases l on l.journal = abs(r.journal)
where r.committed > timestamp_micros(:after) and r.committed <= timestamp_micros(:edge) group by l.tenant;

-- name: value.forget
-- unfenced: history older than is kept for watchers
-- writes: val_log
delete from val_log where key = :key and version <= :through and tenant = $tenant_of;

-- name: value.get
-- read
select v.tenant, v.key, v.version, v.value, v.at from vals v where v.tenant = :tenant and v.key = :key;

-- name: value.history
-- read
select v.tenant, v.key, v.version, v.value, v.at
from val_log v where v.tenant = :tenant and v.key = :key and v.version > :after order by v.version limit :limit;

-- name: value.list
-- read
-- By key, from :lower on and before :upper; a page continues after :above.
select v.tenant, v.key, v.version, v.value, v.at
from vals v where v.tenant = :tenant and v.key >= :lower and v.key < :upper and v.key > :above and v.value is not null
order by v.key limit :limit;

-- name: value.list_down
-- read
-- The same from the last key before :below down.
select v.tenant, v.key, v.version, v.value, v.at
from vals v where v.tenant = :tenant and v.key >= :lower and v.key < :upper and v.key < :below and v.value is not null
order by v.key desc limit :limit;

-- name: value.log
-- unfenced: written with value.put, for watchers
-- writes: val_log
insert into val_log(tenant, key, version, value, `at`)
select $tenant_of, :key, :version, :value, :at from unnest([1]);

-- name: value.put
-- unfenced: CAS on the version, which never decreases, even across a delete; from inside a run the append is fenced
-- writes: vals
insert or update into vals(tenant, key, version, value, `at`)
select x.tenant, x.key, :version, :value, :at
from (select $tenant_of as tenant, :key as key) x left join vals v on v.tenant = x.tenant and v.key = x.key
where case when v.key is null then :version = 1 else v.version = :version - 1 end;
