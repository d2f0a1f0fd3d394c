-- name: effect.create
-- fenced
-- writes: effects
insert into tape.effects(run, pos, sub, tenant, root, role, name, connector, semantics, dispatch, status, authority, item, key,
  business_key, args_hash, args, policy, surplus, created_at, changed_at)
select :run, :pos, :sub, r.tenant, r.root, :role, :name, :connector, :semantics, :dispatch, :status, :authority, :item, :key,
  :business_key, :args_hash, :args, :policy, :surplus, tape.now_ms(), tape.now_ms()
from tape.runs r
where r.journal = :run and r.tenant is not distinct from :tenant and (:run = :source or exists (select 1 from tape.leases s where s.journal = :source and s.run = :run))
  and (:role = 'compensation' or r.phase = 'LIVE')
on conflict do nothing;

-- name: effect.find
-- read
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.send_until, e.reason, e.outcome, e.surplus,
  e.uncertain, e.created_at, e.changed_at,
  cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.run = :run and e.pos = :pos and e.sub = :sub and e.tenant is not distinct from :tenant;

-- name: effect.item
-- read
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.send_until, e.reason, e.outcome, e.surplus,
  e.uncertain, e.created_at, e.changed_at,
  cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.item = :item and e.tenant is not distinct from :tenant and (:role::text is null or e.role = :role)
  and (:status::text is null or e.status = any(string_to_array(:status, ',')))
  and (:min_age_ms::bigint is null or e.changed_at <= tape.now_ms() - :min_age_ms)
limit :limit;

-- name: effect.list
-- read
-- The tenant as a range, and first in the order. As an equality it would drop out of the order, and a planner that
-- expects most rows to be this tenant's would walk all effects by their primary key.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.send_until, e.reason, e.outcome, e.surplus,
  e.uncertain, e.created_at, e.changed_at,
  cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.tenant >= :tenant and e.tenant <= :tenant and (:role::text is null or e.role = :role)
  and (:status::text is null or e.status = any(string_to_array(:status, ',')))
  and (:min_age_ms::bigint is null or e.changed_at <= tape.now_ms() - :min_age_ms)
  and (e.run, e.pos, e.sub) > (:after_run, :after_pos, :after_sub)
order by e.tenant, e.run, e.pos, e.sub limit :limit;

-- name: effect.lock
-- read
-- The journal with authority over the effect, unchanged until our commit: a handoff waits for us, or we wait for it.
select authority from tape.effects where run = :run and pos = :pos and sub = :sub for share;

-- name: effect.newest
-- read
-- effect.list from its end: the effects of the newest run first, and of a run the latest. The tenant as there.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.send_until, e.reason, e.outcome, e.surplus,
  e.uncertain, e.created_at, e.changed_at,
  cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.tenant >= :tenant and e.tenant <= :tenant and (:role::text is null or e.role = :role)
  and (:status::text is null or e.status = any(string_to_array(:status, ',')))
  and (:min_age_ms::bigint is null or e.changed_at <= tape.now_ms() - :min_age_ms)
  and (e.run, e.pos, e.sub) < (:before_run, :before_pos, :before_sub)
order by e.tenant desc, e.run desc, e.pos desc, e.sub desc limit :limit;

-- name: effect.newest_of_run
-- read
-- effect.newest, of one run.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.send_until, e.reason, e.outcome, e.surplus,
  e.uncertain, e.created_at, e.changed_at,
  cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.run = :run and (e.pos, e.sub) < (:before_pos, :before_sub) and e.tenant is not distinct from :tenant
  and (:role::text is null or e.role = :role)
  and (:status::text is null or e.status = any(string_to_array(:status, ',')))
  and (:min_age_ms::bigint is null or e.changed_at <= tape.now_ms() - :min_age_ms)
order by e.run desc, e.pos desc, e.sub desc limit :limit;

-- name: effect.newest_open
-- read
-- effect.newest, of open effects: their index has no others. Their keys are sorted, and only a page of rows is read.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.send_until, e.reason, e.outcome, e.surplus,
  e.uncertain, e.created_at, e.changed_at,
  cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from
  (select o.run, o.pos, o.sub from json_array_elements_text(:statuses::json) i(value) cross join lateral (
      select x.run, x.pos, x.sub from tape.effects x where x.tenant = :tenant and x.status = i.value
        and x.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED') and (:role::text is null or x.role = :role)
        and (:min_age_ms::bigint is null or x.changed_at <= tape.now_ms() - :min_age_ms)
        and (x.run + 0, x.pos, x.sub) < (:before_run, :before_pos, :before_sub)
      offset 0) o
    order by o.run desc, o.pos desc, o.sub desc limit :limit) k
  join tape.effects e on e.run = k.run and e.pos = k.pos and e.sub = k.sub
order by k.run desc, k.pos desc, k.sub desc;

-- name: effect.obligations
-- read
-- Obligations of a root and of its descendants, in the order in which those of one run are compensated. With :below
-- only those of this run and its descendants, without surplus. The + keeps the planner from the order of all effects.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.send_until, e.reason, e.outcome, e.surplus,
  e.uncertain, e.created_at, e.changed_at,
  cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.root = :root and e.role = 'compensation' and e.run + 0 >= :from and e.tenant is not distinct from :tenant
  and (:below::bigint is null or (not e.surplus and (e.run = :below or e.root = :below or e.run in (
    with recursive tree(journal) as (
      select r.journal from tape.runs r where r.journal = :below
      union all select c.journal from tape.runs c join tree on c.parent = tree.journal)
    select journal from tree))))
  and (:status::text is null or e.status = any(string_to_array(:status, ',')))
  and (:min_age_ms::bigint is null or e.changed_at <= tape.now_ms() - :min_age_ms)
order by e.run + 0, e.pos desc, e.sub desc limit :limit;

-- name: effect.run
-- read
-- Of one run, by its own key: a plan for any run, or none, would read the tenant's effects of all runs.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.send_until, e.reason, e.outcome, e.surplus,
  e.uncertain, e.created_at, e.changed_at,
  cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.run = :run and e.pos >= :from and e.tenant is not distinct from :tenant and (:role::text is null or e.role = :role)
  and (:status::text is null or e.status = any(string_to_array(:status, ',')))
  and (:min_age_ms::bigint is null or e.changed_at <= tape.now_ms() - :min_age_ms)
order by e.pos, e.sub limit :limit;

-- name: effect.status
-- fenced
-- writes: effects
-- :by must be the authority. A non_idempotent effect never returns to PENDING automatically: only a sender that knows
-- that nothing was sent, an observation that proved its absence, or an operator, may do that. A pending effect is in
-- doubt only if an attempt of it may have happened, or after it has waited so long that others may have done it.
update tape.effects set status = :to, authority = coalesce(:new_authority, authority), item = coalesce(:new_authority, item),
  attempt = coalesce(:attempt, attempt), attempt_token = coalesce(:token, attempt_token),
  attempt_nonce = coalesce(:nonce, attempt_nonce), send_until = coalesce(tape.now_ms() + :send_within_ms, send_until),
  reason = coalesce(:reason, reason), outcome = coalesce(:outcome, outcome), uncertain = uncertain or :uncertain,
  changed_at = tape.now_ms()
where run = :run and pos = :pos and sub = :sub and tenant is not distinct from :tenant and authority = :by
  and status = any(string_to_array(:from, ','))
  and (:to <> 'PENDING' or semantics <> 'non_idempotent' or :reason in ('not_sent', 'operator')
    or (:reason = 'ABSENT' and role = 'effect' and status in ('UNKNOWN', 'STUCK')))
  and (:to <> 'UNKNOWN' or status <> 'PENDING' or uncertain or :reason = 'long_pending');

-- name: effects.withdraw
-- fenced
-- writes: effects
-- Only an effect that certainly never happened; an uncertain one must be observed first. A read changes nothing. The ||
-- as in run.assert_settled.
update tape.effects set status = 'WITHDRAWN', changed_at = tape.now_ms()
where run = :run and role = 'effect' and status || '' = 'PENDING' and (not uncertain or semantics = 'read');

-- name: effect.withdraw
-- fenced
-- writes: effects
-- One effect whose scope has ended, as effects.withdraw. The || as in run.assert_settled.
update tape.effects set status = 'WITHDRAWN', changed_at = tape.now_ms()
where run = :run and pos = :pos and sub = 0 and status || '' = 'PENDING' and (not uncertain or semantics = 'read');

-- name: erase.effects
-- unfenced: only finished runs are erased
-- writes: effects
update tape.effects e set args = :erased, outcome = i.value ->> 2 from json_array_elements(:rows::json) i(value)
where e.run = :run and e.pos = (i.value ->> 0)::bigint and e.sub = (i.value ->> 1)::bigint;

-- name: erase.results
-- read
select e.pos, e.sub, e.outcome from json_array_elements(:rows::json) i(value)
cross join lateral (select e.pos, e.sub, e.outcome from tape.effects e
  where e.run = :run and e.pos = (i.value ->> 0)::bigint and e.sub = (i.value ->> 1)::bigint limit 1) e;

-- name: item.callees
-- read
-- The callee of each item: the effect's connector, or the effect's name if it has none.
select e.journal, e.callee from json_array_elements_text(:journals::json) i(journal)
cross join lateral (select x.item as journal, coalesce(x.connector, x.name, '') as callee from tape.effects x
  where x.item = i.journal::bigint limit 1) e;

-- name: item.sweep
-- fenced
-- writes: leases
-- The item of a withdrawn effect needs no reactor. The || as in run.assert_settled.
update tape.leases set next_reactor = null
where kind || '' = 'item' and owner is null and journal = (
  select e.item from tape.effects e where e.run = :run and e.pos = :pos and e.sub = 0 and e.status = 'WITHDRAWN');

-- name: items.sweep
-- fenced
-- writes: leases
-- A withdrawn effect needs no reactor. One that may have happened goes to the reconciler at once, whatever its backoff.
-- Arrays, so that the leases are looked up and not joined with all leases; the || as in run.assert_settled.
update tape.leases set next_reactor = case when journal = any(array(
    select e.item from tape.effects e where e.run = :run and e.role = 'effect' and e.status || '' = 'PENDING')) then 'reconciler' end,
  due_at = tape.now_ms()
where owner is null and kind || '' = 'item' and journal = any(array(
  select e.item from tape.effects e where e.run = :run and e.role = 'effect' and e.item is not null
    and (e.status = 'WITHDRAWN' or (e.status || '' = 'PENDING' and e.uncertain))));

-- name: obligations.discharge
-- fenced
-- writes: effects
-- Only if the root ended well: until then the obligations of a completed child stay armed.
update tape.effects set status = 'DISCHARGED', changed_at = tape.now_ms() where root = :run and role = 'compensation' and status = 'ARMED';

-- name: obligations.make_due
-- fenced
-- writes: effects
-- All obligations of the run and its descendants: effects of its finished children are compensated with it. Or the one
-- at :pos.
update tape.effects set status = 'PENDING', changed_at = tape.now_ms()
where root = (select r.root from tape.runs r where r.journal = :run) and role = 'compensation' and status = 'ARMED'
  and case when :pos::bigint is not null then run = :run and pos = :pos and sub = :sub
    else run = :run or root = :run or run in (
      with recursive tree(journal) as (
        select r.journal from tape.runs r where r.journal = :run
        union all select c.journal from tape.runs c join tree on c.parent = tree.journal)
      select journal from tree) end;

-- name: obligations.make_due_below
-- fenced
-- writes: effects
-- Those of the child that the run started at :pos, and of its descendants: from each armed obligation of the tree up to
-- the run, because no index finds the children of one run.
update tape.effects set status = 'PENDING', changed_at = tape.now_ms()
where root = (select r.root from tape.runs r where r.journal = :run) and role = 'compensation' and status = 'ARMED'
  and run = any(array(
    with recursive up(armed, parent, parent_pos) as (
      select r.journal, r.parent, r.parent_pos from tape.effects e
        cross join lateral (select r.journal, r.parent, r.parent_pos from tape.runs r where r.journal = e.run offset 0) r
      where e.root = (select r.root from tape.runs r where r.journal = :run) and e.role = 'compensation' and e.status = 'ARMED'
      union select up.armed, p.parent, p.parent_pos from up
        cross join lateral (select p.parent, p.parent_pos from tape.runs p where p.journal = up.parent offset 0) p
      where up.parent <> :run)
    select armed from up where parent = :run and parent_pos = :pos));

-- name: obligations.release_next
-- fenced
-- writes: leases
-- Strictly newest first: of each run concerned, the newest unsettled obligation, and only if it is due. An array, so
-- that the leases are looked up and not joined with all items; the || as in run.assert_settled.
update tape.leases set next_reactor = 'compensation', due_at = tape.now_ms()
where owner is null and next_reactor is null and kind || '' = 'item' and journal = any(array(
  select e.item from tape.effects e
  where e.root = (select r.root from tape.runs r where r.journal = :run)
    and e.role = 'compensation' and not e.surplus and e.status = 'PENDING'
    and (e.run = :run or e.root = :run or e.run in (
      with recursive tree(journal) as (
        select r.journal from tape.runs r where r.journal = :run
        union all select c.journal from tape.runs c join tree on c.parent = tree.journal)
      select journal from tree))
    and not exists (
      select 1 from tape.effects n where n.root = e.root and n.run = e.run and n.role = 'compensation' and not n.surplus
        and (n.pos > e.pos or (n.pos = e.pos and n.sub > e.sub))
        and n.status in ('PENDING', 'COMMITTED', 'UNKNOWN', 'STUCK'))));
