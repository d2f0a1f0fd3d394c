-- fenced
update timers set status = 'CANCELLED' where run = :run and status = 'SET'
