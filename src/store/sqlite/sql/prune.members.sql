-- read
select r.journal, r.id, cast(l.token as text) as token from runs r join leases l on l.journal = r.journal
where r.journal = :run or (r.root = :run and r.parent is not null)
