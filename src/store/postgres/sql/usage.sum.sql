-- read
-- The size of a body is known without reading it. One look-up for each record: as a join it would be planned by guesses.
select l.tenant, sum(octet_length(r.body))::bigint as bytes
from tape.records r cross join lateral (select l.tenant from tape.leases l where l.journal = abs(r.journal) limit 1) l
where r.stamp > :after and r.stamp <= :edge group by l.tenant
