-- read
-- What operators of one tenant did, newest first, by the tenant's own numbers: those of the table count all tenants'.
select a.n as id, a.tenant, a.n, a.at, a.journal, a.subject, a.body, a.hash from audit a
where a.tenant = :tenant and a.n < :before
order by a.n desc limit :limit
