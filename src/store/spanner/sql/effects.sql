-- macro: $effect_columns
-- An effect `e` as readers see it.
e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.reason, e.outcome, e.surplus, e.uncertain,
  e.created_at, e.changed_at, cast(e.attempt_token as string) as attempt_token, cast(e.attempt_nonce as string) as attempt_nonce,
  e.send_until;

-- macro: $effect_wanted
(:role is null or e.role = :role) and (:status is null or e.status in unnest(split(:status, ',')))
  and (:min_age_ms is null or e.changed_at <= :at - :min_age_ms);

-- name: effect.create
-- fenced
-- writes: effects
insert or ignore into effects(run, pos, sub, tenant, root, role, name, connector, semantics, dispatch, status, authority, item, key,
  business_key, args_hash, args, policy, surplus, created_at, changed_at)
select :run, :pos, :sub, r.tenant, r.root, :role, :name, :connector, :semantics, :dispatch, :status, :authority, :item, :key,
  :business_key, :args_hash, :args, :policy, :surplus, :at, :at
from runs r
where r.journal = :run and r.tenant = :tenant and (:run = :source or exists (select 1 from leases s where s.journal = :source and s.run = :run))
  and (:role = 'compensation' or r.phase = 'LIVE');

-- name: effect.find
-- read
select $effect_columns from effects e where e.run = :run and e.pos = :pos and e.sub = :sub and e.tenant = :tenant;

-- name: effect.item
-- read
select $effect_columns from effects@{force_index=effects_item, $sparse} e
where e.item = :item and e.tenant = :tenant and $effect_wanted limit :limit;

-- name: effect.list
-- read
-- By run, shard by shard; a page continues after one effect.
select $effect_columns from $shards s
cross join unnest(array(select as struct e.run, e.pos, e.sub from effects@{force_index=effects_tenant} e
  where e.tenant = :tenant and e.shard = s and e.born >= :after_run and $effect_wanted
    and (e.born > :after_run or e.pos > :after_pos or (e.pos = :after_pos and e.sub > :after_sub))
  order by e.born, e.pos, e.sub limit :limit)) k
join effects e on e.run = k.run and e.pos = k.pos and e.sub = k.sub
order by e.born, e.pos, e.sub limit :limit;

-- name: effect.lock
-- read
-- The journal with authority over the effect. What is read stays locked until our commit.
select authority from effects where run = :run and pos = :pos and sub = :sub;

-- name: effect.newest
-- read
-- effect.list from its end: the effects of the newest run first, and of a run the latest.
select $effect_columns from $shards s
cross join unnest(array(select as struct e.run, e.pos, e.sub from effects@{force_index=effects_tenant} e
  where e.tenant = :tenant and e.shard = s and e.born <= :before_run and $effect_wanted
    and (e.born < :before_run or e.pos < :before_pos or (e.pos = :before_pos and e.sub < :before_sub))
  order by e.born desc, e.pos desc, e.sub desc limit :limit)) k
join effects e on e.run = k.run and e.pos = k.pos and e.sub = k.sub
order by e.born desc, e.pos desc, e.sub desc limit :limit;

-- name: effect.newest_of_run
-- read
-- effect.newest, of one run.
select $effect_columns from effects e
where e.run = :run and (e.pos < :before_pos or (e.pos = :before_pos and e.sub < :before_sub)) and e.tenant = :tenant and $effect_wanted
order by e.pos desc, e.sub desc limit :limit;

-- name: effect.newest_open
-- read
-- effect.newest, of open effects: their index has no others. Their keys are sorted, and only a page of rows is read.
select $effect_columns from (
  select o.run, o.pos, o.sub from unnest(json_value_array(:statuses)) i
  join effects@{force_index=effects_open, $sparse} o on o.tenant = :tenant and o.pending = i
  where (:role is null or o.role = :role) and (:min_age_ms is null or o.changed_at <= :at - :min_age_ms)
    and (o.born < :before_run or (o.born = :before_run and (o.pos < :before_pos or (o.pos = :before_pos and o.sub < :before_sub))))
  order by o.born desc, o.pos desc, o.sub desc limit :limit) k
join effects e on e.run = k.run and e.pos = k.pos and e.sub = k.sub
order by e.born desc, e.pos desc, e.sub desc;

-- name: effect.obligations
-- read
-- Obligations of a root and of its descendants, in the order in which those of one run are compensated. With :below
-- only those of this run and its descendants, without surplus.
select $effect_columns from effects@{force_index=effects_obligations, $sparse} e
where e.owed = :root and e.born >= :from and e.tenant = :tenant
  and (:below is null or (not e.surplus and (e.run = :below or e.root = :below or :below in unnest((select c.path from runs c where c.journal = e.run)))))
  and (:status is null or e.status in unnest(split(:status, ',')))
  and (:min_age_ms is null or e.changed_at <= :at - :min_age_ms)
order by e.born, e.pos desc, e.sub desc limit :limit;

-- name: effect.run
-- read
-- Of one run, by its own key.
select $effect_columns from effects e
where e.run = :run and e.pos >= :from and e.tenant = :tenant and $effect_wanted
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
  reason = coalesce(:reason, reason), outcome = coalesce(:outcome, outcome), uncertain = uncertain or coalesce(:uncertain, false),
  changed_at = :at
where run = :run and pos = :pos and sub = :sub and tenant = :tenant and authority = :by
  and status in unnest(split(:from, ','))
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
insert or update into effects(run, pos, sub, tenant, root, role, name, connector, semantics, dispatch, status, authority, item, key,
  business_key, args_hash, args, policy, attempt, attempt_token, attempt_nonce, send_until, reason,
  outcome, surplus, uncertain, created_at, changed_at)
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority, e.item, e.key,
  e.business_key, e.args_hash, :erased, e.policy, e.attempt, e.attempt_token, e.attempt_nonce, e.send_until, e.reason,
  cast(json_value(i, '$[2]') as bytes), e.surplus, e.uncertain, e.created_at, e.changed_at
from unnest(json_query_array(:rows)) i
join effects e on e.run = :run and e.pos = cast(json_value(i, '$[0]') as int64) and e.sub = cast(json_value(i, '$[1]') as int64);

-- name: erase.results
-- read
select e.pos, e.sub, e.outcome from unnest(json_query_array(:rows)) i
join effects e on e.run = :run and e.pos = cast(json_value(i, '$[0]') as int64) and e.sub = cast(json_value(i, '$[1]') as int64);

-- name: item.callees
-- read
-- The callee of each item: the effect's connector, or the effect's name if it has none.
select e.item as journal, coalesce(e.connector, e.name, '') as callee from unnest(:journals) i
join effects@{force_index=effects_item, $sparse} e on e.item = i;

-- name: item.sweep
-- fenced
-- writes: leases
-- The item of a withdrawn effect needs no reactor.
update leases set next_reactor = null
where kind = 'item' and owner is null and journal = (
  select e.item from seen_effects e where e.run = :run and e.pos = :pos and e.sub = 0 and e.status = 'WITHDRAWN');

-- name: items.sweep
-- fenced
-- writes: leases
-- A withdrawn effect needs no reactor. One that may have happened goes to the reconciler at once, whatever its backoff.
update leases set next_reactor = case when exists (select 1 from seen_effects e where e.run = :run and e.item = leases.journal and e.status = 'PENDING') then 'reconciler' end,
  due_at = :now
where kind = 'item' and owner is null and journal in (select e.item from seen_effects e
  where e.run = :run and e.role = 'effect' and (e.status = 'WITHDRAWN' or (e.status = 'PENDING' and e.uncertain)) and e.item is not null);

-- name: obligations.discharge
-- fenced
-- writes: effects
-- Only if the root ended well: until then the obligations of a completed child stay armed.
update effects set status = 'DISCHARGED', changed_at = :at where owed = :run and status = 'ARMED';

-- name: obligations.make_due
-- fenced
-- writes: effects
-- All obligations of the run and its descendants: effects of its finished children are compensated with it. Or the one
-- at :pos.
update effects e set status = 'PENDING', changed_at = :at
where e.owed = (select r.root from seen_runs r where r.journal = :run) and e.status = 'ARMED'
  and case when :pos is not null then e.run = :run and e.pos = :pos and e.sub = :sub else $is_within end;

-- name: obligations.make_due_below
-- fenced
-- writes: effects
-- Those of the child that the run started at :pos, and of its descendants.
update effects e set status = 'PENDING', changed_at = :at
where e.owed = (select r.root from seen_runs r where r.journal = :run) and e.status = 'ARMED'
  and exists (select 1 from seen_runs d where d.parent = :run and d.parent_pos = :pos
    and (d.journal = e.run or d.journal in unnest((select c.path from seen_runs c where c.journal = e.run))));

-- name: obligations.release_next
-- fenced
-- writes: leases
-- Strictly newest first: of each run concerned, the newest unsettled obligation, and only if it is due.
update leases set next_reactor = 'compensation', due_at = :now
where owner is null and next_reactor is null and kind = 'item' and journal in (
  select e.item from seen_effects e
  where e.owed = (select r.root from seen_runs r where r.journal = :run) and e.item is not null
    and not e.surplus and e.status = 'PENDING' and $is_within
    and not exists (
      select 1 from seen_effects n where n.run = e.run and n.role = 'compensation' and not n.surplus
        and (n.pos > e.pos or (n.pos = e.pos and n.sub > e.sub))
        and n.status in ('PENDING', 'COMMITTED', 'UNKNOWN', 'STUCK')));
