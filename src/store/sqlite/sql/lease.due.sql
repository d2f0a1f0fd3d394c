-- read
-- Work of one tenant that asks for a reactor, of each of these workflows the oldest: the index holds nothing but such
-- work, queue by queue, and no row of another queue is looked at. What is no run's is in the queue without a name; so is
-- a run that a process of an older version created, whose workflow is looked up. Items whose callee is full are passed by.
select l.journal from json_each(:workflows) w cross join leases l
where l.journal in (
  select x.journal from leases x where x.wants = :wants and x.tenant = :tenant and x.workflow = w.value and x.due_at <= :now
    and x.paused = 0 and (:kind is null or x.kind = :kind)
    and (x.workflow <> '' or x.kind <> 'run' or :kind is null
      or (select r.workflow from runs r where r.journal = x.journal) in (select i.value from json_each(:workflows) i))
    and (:full is null or x.kind <> 'item'
      or coalesce((select coalesce(e.connector, e.name) from effects e where e.item = x.journal), '')
        not in (select g.value from json_each(:full) g))
  order by x.due_at limit :limit)
order by l.due_at limit :limit
