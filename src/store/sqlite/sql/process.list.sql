-- read
select p.tenant, p.owner, p.label, p.at, p.body, :at - p.at as ago_ms from processes p
where p.tenant = :tenant and p.at >= :at - :older_ms order by p.label, p.owner limit :limit
