-- read
select journal, tenant, id, workflow, version, phase, cause, stuck_from, input_hash, labels, outcome, parent, root,
  created_at, ended_at from runs where tenant = :tenant and id = :id
