-- read
-- The tenant from and to, and first in the order: as an equal it would leave the order, and a planner that takes most rows
-- for this tenant's would walk all effects by their primary key.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.send_until, e.reason, e.outcome, e.surplus,
  e.created_at, e.changed_at,
  cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.tenant >= :tenant and e.tenant <= :tenant and (:role is null or e.role = :role)
  and (:status is null or e.status = any(string_to_array(:status, ',')))
  and (:min_age_ms is null or e.changed_at <= tape.now_ms() - :min_age_ms)
  and (e.run, e.pos, e.sub) > (:after_run, :after_pos, :after_sub)
order by e.tenant, e.run, e.pos, e.sub limit :limit
