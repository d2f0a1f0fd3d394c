-- read
-- Runs that could go on and that nobody has taken for a while, by workflow, but for the given ones. Of what is due the
-- oldest thousand: enough to say who is missing.
select x.workflow, count(*) as runs, tape.now_ms() - min(x.since) as lag_ms from (
  select (select r.workflow from tape.runs r where r.journal = l.journal) as workflow, l.since from (
    (select journal, due_at as since from tape.leases where wants = 'recovery'
      and due_at <= (select tape.now_ms()) - :min_lag_ms::bigint and not paused and (:tenant is null or tenant = :tenant)
      order by due_at limit 1000)
    union all select journal, expires_at from tape.leases where owner is not null and kind = 'run'
      and expires_at <= (select tape.now_ms()) - :min_lag_ms::bigint and (:tenant is null or tenant = :tenant)) l) x
where x.workflow <> all(array(select json_array_elements_text(:workflows::json))) group by x.workflow order by x.workflow
