-- read
-- After a lost answer: which runs of the batch exist. Their numbers are ours alone.
select l.journal, cast(l.token as text) as token from tape.leases l where l.journal = any(:journals::bigint[])
