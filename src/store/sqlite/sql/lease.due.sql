-- read
-- Work that asks for a reactor. The partial index holds nothing but such work: finished runs are never scanned.
select journal from leases where wants = :wants and due_at <= :now and paused = 0 and (:tenant is null or tenant = :tenant)
order by due_at limit :limit
