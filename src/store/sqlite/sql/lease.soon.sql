-- read
-- Live runs that rest and whose timer falls due soon, in the order of the index of timers. Of the tenant's timers the next
-- thousand are looked at: to be early is a favour, not a duty.
select d.run as journal from (
    select run, due_at from timers where status = 'SET' and tenant = :tenant and due_at > :at and due_at <= :at + :ahead_ms
    order by due_at limit 1000) d
  cross join leases l on l.journal = d.run cross join runs r on r.journal = d.run
where l.owner is null and l.wants is null and l.paused = 0 and r.phase = 'LIVE'
  and (:served is null or r.workflow in (select i.value from json_each(:served) i))
order by d.due_at limit :limit
