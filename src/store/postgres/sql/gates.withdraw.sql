-- fenced
-- The || as in run.settled.
update tape.gates set status = 'WITHDRAWN' where run = :run and status || '' = 'OPEN'
