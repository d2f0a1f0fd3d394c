-- read
-- What operators of one tenant did, newest first.
select a.id, a.tenant, a.n, a.at, a.journal, a.subject, a.body, a.hash from tape.audit a
where a.tenant = :tenant and a.id < :before
order by a.id desc limit :limit
