-- fenced
delete from claims where run = :run and pos = :pos
