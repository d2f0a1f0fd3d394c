-- fenced
update tape.runs set phase = :to, cause = case when phase = 'LIVE' then :cause else cause end,
  outcome = case when phase = 'LIVE' then :outcome else outcome end,
  stuck_from = case when :to = 'STUCK' then phase end,
  ended_at = case when :to in ('COMPLETED', 'FAILED', 'CANCELLED', 'COMPENSATED') then tape.now_ms() end
where journal = :journal and phase = any(string_to_array(:from, ','))
  and (phase <> 'STUCK' or stuck_from = :to)
  and (ended_at is null)
  and (phase <> 'ENDING' or :decided is null or cause = any(string_to_array(:decided, ',')))
  and (:to not in ('COMPLETED', 'FAILED', 'CANCELLED', 'COMPENSATED') or parent is not distinct from :parent)
