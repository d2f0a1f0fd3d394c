-- read
select l.tenant, sum(octet_length(r.body)) as bytes from records r cross join leases l on l.journal = abs(r.journal)
where r.id > :after and r.id <= :edge group by l.tenant
