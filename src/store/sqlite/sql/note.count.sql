-- unfenced: an inbox has many writers and no lease; the counter is what parking and ending compare
update leases set notes = notes + 1,
  wants = case when owner is null and doomed = 0 then (case kind when 'run' then 'recovery' else 'reconciler' end) else wants end,
  due_at = case when owner is null and doomed = 0 then :now else due_at end
where journal = :journal and open = 1
returning notes, kind, tenant, case when owner is null then wants end as wakes
