-- read
-- Work of one tenant that asks for a reactor, of each of these workflows the oldest: the index holds nothing but such
-- work, queue by queue, and no row of another queue is looked at. What is no run's is in the queue without a name; so is
-- a run that a process of an older version created, whose workflow is looked up. The time stands in a sub-select because
-- a volatile function cannot be looked up in an index: what is due later would be scanned. Items whose callee is full
-- are passed by.
select l.journal from (select distinct json_array_elements_text(:workflows::json) as workflow) w
cross join lateral (
  select x.journal, x.due_at from tape.leases x where x.wants = :wants and x.tenant = :tenant and x.workflow = w.workflow
    and x.due_at <= (select tape.now_ms()) and not x.paused and (:kind::text is null or x.kind || '' = :kind)
    and (x.workflow <> '' or x.kind || '' <> 'run' or :kind::text is null or (select r.workflow from tape.runs r where r.journal = x.journal)
      = any(array(select json_array_elements_text(:workflows::json))))
    and (:full::text is null or x.kind || '' <> 'item'
      or coalesce((select coalesce(e.connector, e.name) from tape.effects e where e.item = x.journal limit 1), '')
        <> all(array(select json_array_elements_text(:full::json))))
  order by x.due_at limit :limit) l
order by l.due_at limit :limit
