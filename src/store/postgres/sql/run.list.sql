-- read
-- The tenant as in effect.list.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants from tape.runs r
cross join lateral (select l.notes, l.owner, l.wants from tape.leases l where l.journal = r.journal limit 1) l
where r.tenant >= :tenant and r.tenant <= :tenant and r.journal < :before and (:workflow is null or r.workflow = :workflow)
  and (:label_key is null or r.labels::json ->> :label_key = :label_value)
  and (:status is null or (case when r.phase <> 'LIVE' then r.phase when l.owner is not null then 'RUNNING'
    when l.wants is not null then 'RUNNABLE' else 'WAITING' end) = any(string_to_array(:status, ',')))
order by r.tenant desc, r.journal desc limit :limit
