-- fenced
update tape.timers set status = :to where run = :run and pos = :pos and purpose = :purpose and status = 'SET'
