-- read
-- Live runs that rest and whose timer falls due soon, in the order of the index of timers. Of the tenant's timers the next
-- thousand are looked at: to be early is a favour, not a duty. The time as in lease.due.
select t.run as journal from (
    select run, due_at from tape.timers where status = 'SET' and tenant = :tenant and due_at > (select tape.now_ms())
      and due_at <= (select tape.now_ms() + :ahead_ms::bigint) order by due_at limit 1000) t
  cross join lateral (select 1 from tape.leases l where l.journal = t.run and l.owner is null and l.wants is null and not l.paused limit 1) l
  cross join lateral (select r.workflow from tape.runs r where r.journal = t.run and r.phase || '' = 'LIVE' limit 1) r
where :served::text is null or r.workflow = any(array(select json_array_elements_text(:served::json)))
order by t.due_at limit :limit
