-- read
select e.*, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce,
  e.send_until + :at - :steady as send_until from effects e
where e.item = :item and +e.tenant = :tenant and (:role is null or e.role = :role)
  and (:status is null or instr(',' || :status || ',', ',' || e.status || ',') > 0)
  and (:min_age_ms is null or e.changed_at <= :at - :min_age_ms)
limit :limit
