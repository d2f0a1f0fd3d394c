-- read
select r.*, l.notes, l.owner as lease_owner, l.wants as lease_wants from tape.runs r join tape.leases l on l.journal = r.journal
where r.tenant = :tenant and r.id = :id
