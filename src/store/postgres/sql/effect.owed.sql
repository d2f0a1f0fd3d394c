-- read
-- Obligations of a root and of everything below it, in the order in which those of one run are undone. The +
-- keeps the planner from the order of all effects.
select e.*, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.root = :root and e.role = 'inverse' and e.tenant || '' = :tenant
  and (:status is null or e.status = any(string_to_array(:status, ',')))
  and (:min_age_ms is null or e.changed_at <= tape.now_ms() - :min_age_ms)
order by e.run + 0, e.pos desc, e.sub desc limit :limit
