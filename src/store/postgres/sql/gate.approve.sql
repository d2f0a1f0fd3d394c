-- unfenced: with the note that approves it; the gate is resolved by the run's holder alone
-- The status as in gate.status: the look-up goes by (run, pos).
update tape.gates set approvals = approvals || :note || ',' where run = :run and pos = :pos and status || '' = 'OPEN'
