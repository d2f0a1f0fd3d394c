-- unfenced: an operator's pause; the plan takes the lease over first, so the former holder is fenced
update tape.leases set paused = :paused where journal = :journal
