-- read
select r.*, l.notes, l.owner as lease_owner, l.wants as lease_wants from tape.runs r
cross join lateral (select * from tape.leases l where l.journal = r.journal limit 1) l
where r.tenant = :tenant and r.id = :id
