-- read
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at,
  l.notes, l.owner as lease_owner, l.wants as lease_wants from runs r join leases l on l.journal = r.journal
where r.tenant = :tenant and r.id = :id
