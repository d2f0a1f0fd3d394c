-- read
-- Runs that could go on and that nobody has taken for a while, by workflow, but for the given ones. Of what is due the
-- oldest thousand: enough to say who is missing.
select x.workflow, count(*) as runs, :now - min(x.since) as lag_ms from (
  select (select r.workflow from runs r where r.journal = l.journal) as workflow, l.since from (
    select * from (select journal, due_at as since from leases where wants = 'recovery' and due_at <= :now - :min_lag_ms
      and paused = 0 and (:tenant is null or tenant = :tenant) order by due_at limit 1000)
    union all select journal, expires_at from leases where owner is not null and kind = 'run'
      and expires_at <= :now - :min_lag_ms and (:tenant is null or tenant = :tenant)) l) x
where x.workflow not in (select i.value from json_each(:workflows) i) group by x.workflow order by x.workflow
