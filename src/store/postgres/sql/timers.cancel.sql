-- fenced
-- The || as in run.settled.
update tape.timers set status = 'CANCELLED' where run = :run and status || '' = 'SET'
