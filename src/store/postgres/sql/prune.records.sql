-- unfenced: only finished runs are pruned. An array, because OR with a sub-select would scan the table.
delete from tape.records where journal = any(array(
  select x.journal from (values (:run), (-:run)) x(journal)
  union all select j.journal from tape.leases j where j.run = :run and j.kind = 'item'
  union all select -j.journal from tape.leases j where j.run = :run and j.kind = 'item'))
