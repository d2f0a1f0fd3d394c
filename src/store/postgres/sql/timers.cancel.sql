-- fenced
update tape.timers set status = 'CANCELLED' where run = :run and status = 'SET'
