-- unfenced: only finished runs are pruned
delete from records where journal in (:run, -:run) or journal in (
  select j.journal from leases j where j.run = :run and j.kind = 'item'
  union all select -j.journal from leases j where j.run = :run and j.kind = 'item')
