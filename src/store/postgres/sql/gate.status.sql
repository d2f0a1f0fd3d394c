-- fenced
-- A gate with approvers is answered by a signal that one of them has sent, and by no other.
update tape.gates set status = :to, value = :value where run = :run and pos = :pos and status = 'OPEN'
  and (approvers is null or :to <> 'RECEIVED' or position(',' || :note || ',' in approvals) > 0)
