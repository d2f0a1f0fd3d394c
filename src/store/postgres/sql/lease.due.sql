-- read
-- Work that asks for a reactor. The partial index holds nothing but such work: finished runs are never scanned. The time
-- stands in a sub-select because a volatile function cannot be looked up in an index: what is due later would be scanned.
-- A run's workflow is looked up by its journal, for what is due alone: EXISTS might be hashed, from all runs there are.
select journal from tape.leases l where wants = :wants and due_at <= (select tape.now_ms()) and not paused and (:tenant is null or tenant = :tenant)
  and (:workflows::text is null or (select r.workflow from tape.runs r where r.journal = l.journal)
    = any(array(select json_array_elements_text(:workflows::json))))
order by due_at limit :limit
