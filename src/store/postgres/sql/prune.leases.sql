-- unfenced: a run's lease goes with the run; the tombstone keeps its token
delete from tape.leases where journal = any(array(
  select :run union all select j.journal from tape.leases j where j.run = :run and j.kind = 'item'))
