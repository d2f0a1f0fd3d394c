-- read
-- Holders of one tenant whose time has run out, of the given reactors and workflows. When a term ends is in no index, or
-- every heartbeat would touch one: what is held in these queues is looked at. The queue without a name as in lease.due.
select l.journal from (select distinct json_array_elements_text(:workflows::json) as workflow) w
cross join lateral (
  select x.journal from tape.leases x where x.owner is not null and x.kind <> 'name' and x.tenant = :tenant and x.workflow = w.workflow
    and (x.expires_at <= (select tape.now_ms()) or x.doomed) and x.reactor = any(string_to_array(:stale_of, ','))
    and (:kind::text is null or x.kind = :kind)
    and (x.workflow <> '' or x.kind <> 'run' or :kind::text is null or (select r.workflow from tape.runs r where r.journal = x.journal)
      = any(array(select json_array_elements_text(:workflows::json))))
    and (:full::text is null or x.kind || '' <> 'item'
      or coalesce((select coalesce(e.connector, e.name) from tape.effects e where e.item = x.journal limit 1), '')
        <> all(array(select json_array_elements_text(:full::json))))
  limit :limit) l
limit :limit
