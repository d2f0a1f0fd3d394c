-- unfenced: a run's lease goes with the run; the tombstone keeps its token
delete from tape.leases where journal = :run or (run = :run and kind = 'item')
