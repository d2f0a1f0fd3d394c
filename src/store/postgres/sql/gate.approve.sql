-- unfenced: with the note that approves it; the gate is resolved by the run's holder alone
update tape.gates set approvals = approvals || :note || ',' where run = :run and pos = :pos and status = 'OPEN'
