-- read
-- Whole trees only: a root that ended long ago, all of whose descendants have ended, with no surplus left to undo.
select r.journal, r.id, cast(l.token as text) as token from runs r join leases l on l.journal = r.journal
where r.tenant = :tenant and r.ended_at < :before and not exists (
    select 1 from runs c where c.root = r.root and (c.ended_at is null or c.ended_at >= :before))
  and not exists (select 1 from effects e where e.root = r.root and e.status in
    ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED', 'ARMED'))
order by r.ended_at limit :limit
