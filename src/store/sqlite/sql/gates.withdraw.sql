-- fenced
update gates set status = 'WITHDRAWN' where run = :run and status = 'OPEN'
