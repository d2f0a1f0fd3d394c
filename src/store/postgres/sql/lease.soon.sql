-- read
-- Live runs that rest and whose timer falls due soon, in the order of the index of timers. The time as in lease.due.
select t.run as journal from tape.timers t join tape.leases l on l.journal = t.run join tape.runs r on r.journal = t.run
where t.status = 'SET' and t.due_at > (select tape.now_ms()) and t.due_at <= (select tape.now_ms() + :ahead_ms::bigint)
  and (:tenant is null or t.tenant = :tenant) and l.owner is null and l.wants is null and not l.paused and r.phase = 'LIVE'
  and (:workflows::text is null or r.workflow = any(array(select json_array_elements_text(:workflows::json))))
order by t.due_at limit :limit
