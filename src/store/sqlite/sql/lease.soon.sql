-- read
-- Live runs that rest and whose timer falls due soon, by each timer's own clock and in the order of the index. Of the
-- tenant's timers the next thousand of each kind are looked at: to be early is a favour, not a duty.
select d.run as journal from (
  select * from (select run, due_at - :at as in_ms from timers
    where status = 'SET' and tenant = :tenant and steady = 0 and due_at > :at and due_at <= :at + :ahead_ms
    order by due_at limit 1000)
  union all
  select * from (select run, due_at - :steady from timers
    where status = 'SET' and tenant = :tenant and steady = 1 and due_at > :steady and due_at <= :steady + :ahead_ms
    order by due_at limit 1000)) d
  cross join leases l on l.journal = d.run cross join runs r on r.journal = d.run
where l.owner is null and l.wants is null and l.paused = 0 and r.phase = 'LIVE'
  and (:served is null or r.workflow in (select i.value from json_each(:served) i))
order by d.in_ms limit :limit
