-- read
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.reason, e.outcome, e.surplus, e.created_at,
  e.changed_at, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce,
  e.send_until + :at - :steady as send_until from effects e
where e.tenant = :tenant and (:role is null or e.role = :role)
  and (:status is null or instr(',' || :status || ',', ',' || e.status || ',') > 0)
  and (:min_age_ms is null or e.changed_at <= :at - :min_age_ms)
  and (e.run, e.pos, e.sub) > (:after_run, :after_pos, :after_sub)
order by e.run, e.pos, e.sub limit :limit
