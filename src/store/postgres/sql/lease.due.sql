-- read
-- Work that asks for a reactor. The partial index holds nothing but such work: finished runs are never scanned. The time
-- stands in a sub-select because a volatile function cannot be looked up in an index: what is due later would be scanned.
select journal from tape.leases where wants = :wants and due_at <= (select tape.now_ms()) and not paused and (:tenant is null or tenant = :tenant)
order by due_at limit :limit
