-- read
-- Holders of one tenant whose time has run out, of the given reactors and workflows. When a term ends is in no index, or
-- every heartbeat would touch one: what is held in these queues is looked at. The queue without a name as in lease.due.
select l.journal from json_each(:workflows) w cross join leases l indexed by leases_held
where l.owner is not null and l.kind <> 'name' and l.tenant = :tenant and l.workflow = w.value
  and (l.expires_at <= :now or l.doomed = 1) and instr(',' || :stale_of || ',', ',' || l.reactor || ',') > 0
  and (:kind is null or l.kind = :kind)
  and (l.workflow <> '' or l.kind <> 'run' or :kind is null
    or (select r.workflow from runs r where r.journal = l.journal) in (select i.value from json_each(:workflows) i))
  and (:full is null or l.kind <> 'item'
    or coalesce((select coalesce(e.connector, e.name) from effects e where e.item = l.journal), '')
      not in (select g.value from json_each(:full) g))
limit :limit
