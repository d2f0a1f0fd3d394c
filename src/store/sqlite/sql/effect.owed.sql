-- read
-- Obligations of a root and of everything below it, in the order in which those of one run are undone.
select e.*, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from effects e
where e.root = :root and e.role = 'inverse' and +e.tenant = :tenant
  and (:status is null or instr(',' || :status || ',', ',' || e.status || ',') > 0)
  and (:min_age_ms is null or e.changed_at <= :at - :min_age_ms)
order by e.run, e.pos desc, e.sub desc limit :limit
