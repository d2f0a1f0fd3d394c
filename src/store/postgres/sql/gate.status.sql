-- fenced
-- A gate with approvers is answered by a signal that one of them has sent, and by no other. Concatenated, the status
-- leaves the partial index gates_open out of the plan: (run, pos) is the key, also of a table known to be empty.
update tape.gates set status = :to, value = :value where run = :run and pos = :pos and status || '' = 'OPEN'
  and (approvers is null or :to <> 'RECEIVED' or position(',' || :note || ',' in approvals) > 0)
