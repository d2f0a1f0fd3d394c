-- fenced
delete from tape.claims where run = :run and pos = :pos
