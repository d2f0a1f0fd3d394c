-- read
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants from tape.runs r
cross join lateral (select l.notes, l.owner, l.wants from tape.leases l where l.journal = r.journal limit 1) l
where r.tenant = :tenant and r.id = :id
