-- fenced
update runs set phase = :to, cause = case when phase = 'LIVE' then :cause else cause end,
  outcome = case when phase = 'LIVE' then :outcome else outcome end,
  stuck_from = case when :to = 'STUCK' then phase end,
  ended_at = case when :to in ('COMPLETED', 'FAILED', 'CANCELLED', 'COMPENSATED') then :at end
where journal = :journal and instr(',' || :from || ',', ',' || phase || ',') > 0
  and (phase <> 'STUCK' or stuck_from = :to)
  and (ended_at is null)
  and (phase <> 'ENDING' or :decided is null or instr(',' || :decided || ',', ',' || cause || ',') > 0)
  and (:to not in ('COMPLETED', 'FAILED', 'CANCELLED', 'COMPENSATED') or parent is :parent)
