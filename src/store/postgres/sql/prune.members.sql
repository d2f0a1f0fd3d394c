-- read
select r.journal, r.id, cast(l.token as text) as token from tape.runs r join tape.leases l on l.journal = r.journal
where r.journal = :run or (r.root = :run and r.parent is not null)
