-- unfenced: only finished runs are pruned
delete from tape.records where journal in (:run, -:run) or journal in (
  select j.journal from tape.leases j where j.run = :run and j.kind = 'item'
  union all select -j.journal from tape.leases j where j.run = :run and j.kind = 'item')
