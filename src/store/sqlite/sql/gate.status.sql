-- fenced
update gates set status = :to, value = :value where run = :run and pos = :pos and status = 'OPEN'
