-- read
-- Holders whose time has run out, of the given reactors.
select journal from leases where owner is not null and (expires_at <= :now or doomed = 1) and kind <> 'name'
  and instr(',' || :stale_of || ',', ',' || reactor || ',') > 0 and (:tenant is null or tenant = :tenant)
  and (:workflows is null or (select r.workflow from runs r where r.journal = leases.journal)
    in (select i.value from json_each(:workflows) i))
limit :limit
