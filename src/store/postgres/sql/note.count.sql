-- unfenced: an inbox has many writers and no lease; the counter is what parking and ending compare
-- A run that nobody holds is wanted at once. An item that already waits for its reactor goes on waiting for that one.
update tape.leases set notes = notes + 1,
  wants = case when owner is not null or doomed then wants when kind = 'run' then 'recovery' else coalesce(wants, 'reconciler') end,
  due_at = case when owner is null and not doomed and (kind = 'run' or wants is null) then tape.now_ms() else due_at end
where journal = :journal and tenant is not distinct from :tenant and open
returning notes, kind, tenant, workflow, case when owner is null then wants end as wakes
