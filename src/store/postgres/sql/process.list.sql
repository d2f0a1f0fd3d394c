-- read
select p.tenant, p.owner, p.label, p.at, p.body, tape.now_ms() - p.at as ago_ms from tape.processes p
where p.tenant = :tenant and p.at >= (select tape.now_ms()) - :older_ms order by p.label, p.owner limit :limit
