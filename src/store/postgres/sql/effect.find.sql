-- read
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.send_until, e.reason, e.outcome, e.surplus,
  e.created_at, e.changed_at,
  cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.run = :run and e.pos = :pos and e.sub = :sub and e.tenant is not distinct from :tenant
