-- fenced
delete from tape.claims where run = :run
  and exists (select 1 from tape.effects e where e.run = claims.run and e.pos = claims.pos and e.sub = 0 and e.status = 'WITHDRAWN')
