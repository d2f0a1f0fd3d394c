-- fenced
-- instr, not IN: a list of constants is built as a table of its own at every execution. No phase is part of another.
update runs set phase = :to, cause = case when phase = 'LIVE' then :cause else cause end,
  outcome = case when phase = 'LIVE' then :outcome else outcome end,
  stuck_from = case when :to = 'STUCK' then phase end,
  ended_at = case when instr('COMPLETED,FAILED,CANCELLED,COMPENSATED', :to) > 0 then :at end
where journal = :journal and instr(:from, phase) > 0
  and (phase <> 'STUCK' or stuck_from = :to)
  and (ended_at is null)
  and (phase <> 'ENDING' or :decided is null or instr(',' || :decided || ',', ',' || cause || ',') > 0)
  and (instr('COMPLETED,FAILED,CANCELLED,COMPENSATED', :to) = 0 or parent is :parent)
