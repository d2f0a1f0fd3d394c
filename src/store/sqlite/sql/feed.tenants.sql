-- read
-- Whose records lie between two places of the feed: one look for all that follow it.
select l.tenant, min(r.id) as first, max(r.id) as last from records r cross join leases l on l.journal = abs(r.journal)
where r.id > :after and r.id <= :edge group by l.tenant
