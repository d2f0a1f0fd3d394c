-- read
-- What operators of all tenants did, newest first.
select a.id, a.tenant, a.n, a.at, a.journal, a.subject, a.body, a.hash from audit a where a.id < :before order by a.id desc limit :limit
