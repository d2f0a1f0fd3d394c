-- read
select r.journal, r.id, r.created_at, r.ended_at, cast(l.token as text) as token from runs r join leases l on l.journal = r.journal
where r.journal in (select :run union all select c.journal from runs c where c.root = :run and c.parent is not null)
