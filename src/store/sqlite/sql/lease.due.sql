-- read
-- Work that asks for a reactor. The partial index holds nothing but such work: finished runs are never scanned. A run's
-- workflow is looked up by its journal, for what is due alone.
select journal from leases where wants = :wants and due_at <= :now and paused = 0 and (:tenant is null or tenant = :tenant)
  and (:workflows is null or (select r.workflow from runs r where r.journal = leases.journal)
    in (select i.value from json_each(:workflows) i))
order by due_at limit :limit
