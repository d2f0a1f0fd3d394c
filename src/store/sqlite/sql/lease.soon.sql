-- read
-- Live runs that rest and whose timer falls due soon, in the order of the index of timers.
select t.run as journal from timers t join leases l on l.journal = t.run join runs r on r.journal = t.run
where t.status = 'SET' and t.due_at > :at and t.due_at <= :at + :ahead_ms and (:tenant is null or t.tenant = :tenant)
  and l.owner is null and l.wants is null and l.paused = 0 and r.phase = 'LIVE'
  and (:workflows is null or r.workflow in (select i.value from json_each(:workflows) i))
order by t.due_at limit :limit
