-- name: effect.create
-- fenced
-- writes: effects
insert into effects(run, pos, sub, tenant, root, role, name, connector, semantics, dispatch, status, authority, item, key,
  business_key, args_hash, args, policy, surplus, created_at, changed_at)
select :run, :pos, :sub, r.tenant, r.root, :role, :name, :connector, :semantics, :dispatch, :status, :authority, :item, :key,
  :business_key, :args_hash, :args, :policy, :surplus, :at, :at
from runs r
where r.journal = :run and r.tenant = :tenant and (:run = :source or exists (select 1 from leases s where s.journal = :source and s.run = :run))
  and (:role = 'compensation' or r.phase = 'LIVE')
on conflict do nothing;

-- name: effect.find
-- read
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.reason, e.outcome, e.surplus, e.uncertain,
  e.created_at, e.changed_at, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce,
  e.send_until + :at - :steady as send_until from effects e
where e.run = :run and e.pos = :pos and e.sub = :sub and e.tenant = :tenant;

-- name: effect.item
-- read
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.reason, e.outcome, e.surplus, e.uncertain,
  e.created_at, e.changed_at, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce,
  e.send_until + :at - :steady as send_until from effects e
where e.item = :item and +e.tenant = :tenant and (:role is null or e.role = :role)
  and (:status is null or instr(',' || :status || ',', ',' || e.status || ',') > 0)
  and (:min_age_ms is null or e.changed_at <= :at - :min_age_ms)
limit :limit;

-- name: effect.list
-- read
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.reason, e.outcome, e.surplus, e.uncertain,
  e.created_at, e.changed_at, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce,
  e.send_until + :at - :steady as send_until from effects e
where e.tenant = :tenant and (:role is null or e.role = :role)
  and (:status is null or instr(',' || :status || ',', ',' || e.status || ',') > 0)
  and (:min_age_ms is null or e.changed_at <= :at - :min_age_ms)
  and (e.run, e.pos, e.sub) > (:after_run, :after_pos, :after_sub)
order by e.run, e.pos, e.sub limit :limit;

-- name: effect.lock
-- read
-- The journal with authority over the effect. No other process writes before our commit.
select authority from effects where run = :run and pos = :pos and sub = :sub;

-- name: effect.newest
-- read
-- effect.list from its end: the effects of the newest run first, and of a run the latest.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.reason, e.outcome, e.surplus, e.uncertain,
  e.created_at, e.changed_at, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce,
  e.send_until + :at - :steady as send_until from effects e
where e.tenant = :tenant and (:role is null or e.role = :role)
  and (:status is null or instr(',' || :status || ',', ',' || e.status || ',') > 0)
  and (:min_age_ms is null or e.changed_at <= :at - :min_age_ms)
  and (e.run, e.pos, e.sub) < (:before_run, :before_pos, :before_sub)
order by e.run desc, e.pos desc, e.sub desc limit :limit;

-- name: effect.newest_of_run
-- read
-- effect.newest, of one run.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.reason, e.outcome, e.surplus, e.uncertain,
  e.created_at, e.changed_at, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce,
  e.send_until + :at - :steady as send_until from effects e
where e.run = :run and (e.pos, e.sub) < (:before_pos, :before_sub) and +e.tenant = :tenant and (:role is null or e.role = :role)
  and (:status is null or instr(',' || :status || ',', ',' || e.status || ',') > 0)
  and (:min_age_ms is null or e.changed_at <= :at - :min_age_ms)
order by e.pos desc, e.sub desc limit :limit;

-- name: effect.newest_open
-- read
-- effect.newest, of open effects: their index has no others. Their keys are sorted, and only a page of rows is read.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.reason, e.outcome, e.surplus, e.uncertain,
  e.created_at, e.changed_at, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce,
  e.send_until + :at - :steady as send_until from
  (select o.run, o.pos, o.sub from json_each(:statuses) i cross join effects o indexed by effects_open
    on o.tenant = :tenant and o.status = i.value
    where o.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED') and (:role is null or o.role = :role)
      and (:min_age_ms is null or o.changed_at <= :at - :min_age_ms)
      and (o.run, o.pos, o.sub) < (:before_run, :before_pos, :before_sub)
    order by o.run desc, o.pos desc, o.sub desc limit :limit) k
  cross join effects e on e.run = k.run and e.pos = k.pos and e.sub = k.sub;

-- name: effect.obligations
-- read
-- Obligations of a root and of its descendants, in the order in which those of one run are compensated. With :below
-- only those of this run and its descendants, without surplus.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.reason, e.outcome, e.surplus, e.uncertain,
  e.created_at, e.changed_at, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce,
  e.send_until + :at - :steady as send_until from effects e
where e.root = :root and e.role = 'compensation' and e.run + 0 >= :from and +e.tenant = :tenant
  and (:below is null or (e.surplus = 0 and (e.run = :below or e.root = :below or e.run in (
    with recursive tree(journal) as (select :below union all select c.journal from runs c join tree on c.parent = tree.journal)
    select journal from tree))))
  and (:status is null or instr(',' || :status || ',', ',' || e.status || ',') > 0)
  and (:min_age_ms is null or e.changed_at <= :at - :min_age_ms)
order by e.run, e.pos desc, e.sub desc limit :limit;

-- name: effect.run
-- read
-- Of one run, by its own key: a list with `:run is null or` would read every effect of every run.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.reason, e.outcome, e.surplus, e.uncertain,
  e.created_at, e.changed_at, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce,
  e.send_until + :at - :steady as send_until from effects e
where e.run = :run and e.pos >= :from and +e.tenant = :tenant and (:role is null or e.role = :role)
  and (:status is null or instr(',' || :status || ',', ',' || e.status || ',') > 0)
  and (:min_age_ms is null or e.changed_at <= :at - :min_age_ms)
order by e.pos, e.sub limit :limit;

-- name: effect.status
-- fenced
-- writes: effects
-- :by must be the authority. A non_idempotent effect never returns to PENDING automatically: only a sender that knows
-- that nothing was sent, an observation that proved its absence, or an operator, may do that. A pending effect is in
-- doubt only if an attempt of it may have happened, or after it has waited so long that others may have done it.
update effects set status = :to, authority = coalesce(:new_authority, authority), item = coalesce(:new_authority, item),
  attempt = coalesce(:attempt, attempt), attempt_token = coalesce(:token, attempt_token),
  attempt_nonce = coalesce(:nonce, attempt_nonce), send_until = coalesce(:steady + :send_within_ms, send_until),
  reason = coalesce(:reason, reason), outcome = coalesce(:outcome, outcome), uncertain = uncertain or :uncertain,
  changed_at = :at
where run = :run and pos = :pos and sub = :sub and tenant = :tenant and authority = :by
  and instr(',' || :from || ',', ',' || status || ',') > 0
  and (:to <> 'PENDING' or semantics <> 'non_idempotent' or :reason in ('not_sent', 'operator')
    or (:reason = 'ABSENT' and role = 'effect' and status in ('UNKNOWN', 'STUCK')))
  and (:to <> 'UNKNOWN' or status <> 'PENDING' or uncertain or :reason = 'long_pending');

-- name: effects.withdraw
-- fenced
-- writes: effects
-- Only an effect that certainly never happened; an uncertain one must be observed first. A read changes nothing.
update effects set status = 'WITHDRAWN', changed_at = :at
where run = :run and role = 'effect' and status = 'PENDING' and (not uncertain or semantics = 'read');

-- name: effect.withdraw
-- fenced
-- writes: effects
-- One effect whose scope has ended, as effects.withdraw.
update effects set status = 'WITHDRAWN', changed_at = :at
where run = :run and pos = :pos and sub = 0 and status = 'PENDING' and (not uncertain or semantics = 'read');

-- name: erase.effects
-- unfenced: only finished runs are erased
-- writes: effects
update effects set args = :erased, outcome = i.value ->> 2 from json_each(:rows) i
where run = :run and pos = i.value ->> 0 and sub = i.value ->> 1;

-- name: erase.results
-- read
select e.pos, e.sub, e.outcome from json_each(:rows) i
cross join effects e on e.run = :run and e.pos = i.value ->> 0 and e.sub = i.value ->> 1;

-- name: item.callees
-- read
-- The callee of each item: the effect's connector, or the effect's name if it has none.
select e.item as journal, coalesce(e.connector, e.name, '') as callee from json_each(:journals) i
cross join effects e on e.item = i.value;

-- name: item.sweep
-- fenced
-- writes: leases
-- The item of a withdrawn effect needs no reactor.
update leases set next_reactor = null
where kind = 'item' and owner is null and journal = (
  select e.item from effects e where e.run = :run and e.pos = :pos and e.sub = 0 and e.status = 'WITHDRAWN');

-- name: items.sweep
-- fenced
-- writes: leases
-- A withdrawn effect needs no reactor. One that may have happened goes to the reconciler at once, whatever its backoff.
update leases set next_reactor = case e.status when 'PENDING' then 'reconciler' end, due_at = :now from effects e
where e.run = :run and e.role = 'effect' and (e.status = 'WITHDRAWN' or (e.status = 'PENDING' and e.uncertain))
  and leases.journal = e.item and leases.kind = 'item' and leases.owner is null;

-- name: obligations.discharge
-- fenced
-- writes: effects
-- Only if the root ended well: until then the obligations of a completed child stay armed.
update effects set status = 'DISCHARGED', changed_at = :at where root = :run and role = 'compensation' and status = 'ARMED';

-- name: obligations.make_due
-- fenced
-- writes: effects
-- All obligations of the run and its descendants: effects of its finished children are compensated with it. Or the one
-- at :pos.
update effects set status = 'PENDING', changed_at = :at
where root = (select r.root from runs r where r.journal = :run) and role = 'compensation' and status = 'ARMED'
  and case when :pos is not null then run = :run and pos = :pos and sub = :sub
    else run = :run or root = :run or run in (
      with recursive tree(journal) as (select :run union all select c.journal from runs c join tree on c.parent = tree.journal)
      select journal from tree) end;

-- name: obligations.make_due_below
-- fenced
-- writes: effects
-- Those of the child that the run started at :pos, and of its descendants: from each armed obligation of the tree up to
-- the run, because no index finds the children of one run.
update effects set status = 'PENDING', changed_at = :at
where root = (select r.root from runs r where r.journal = :run) and role = 'compensation' and status = 'ARMED'
  and run in (
    with recursive up(armed, parent, parent_pos) as (
      select r.journal, r.parent, r.parent_pos from effects e cross join runs r on r.journal = e.run
      where e.root = (select r.root from runs r where r.journal = :run) and e.role = 'compensation' and e.status = 'ARMED'
      union select up.armed, p.parent, p.parent_pos from up cross join runs p on p.journal = up.parent
      where up.parent <> :run)
    select armed from up where parent = :run and parent_pos = :pos);

-- name: obligations.release_next
-- fenced
-- writes: leases
-- Strictly newest first: of each run concerned, the newest unsettled obligation, and only if it is due.
update leases set next_reactor = 'compensation', due_at = :now
where owner is null and next_reactor is null and kind = 'item' and journal in (
  select e.item from effects e
  where e.root = (select r.root from runs r where r.journal = :run)
    and e.role = 'compensation' and e.surplus = 0 and e.status = 'PENDING'
    and (e.run = :run or e.root = :run or e.run in (
      with recursive tree(journal) as (select :run union all select c.journal from runs c join tree on c.parent = tree.journal)
      select journal from tree))
    and not exists (
      select 1 from effects n where n.run = e.run and n.role = 'compensation' and n.surplus = 0
        and (n.pos > e.pos or (n.pos = e.pos and n.sub > e.sub))
        and n.status in ('PENDING', 'COMMITTED', 'UNKNOWN', 'STUCK')));
