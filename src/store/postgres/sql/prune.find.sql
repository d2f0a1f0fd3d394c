-- read
-- Roots that ended long ago, whose whole tree did, with nothing left to undo. Trees go as one. LIMIT 1 as in end: look-ups,
-- not joins with all trees there are. Locked, because another may prune at the same moment: it takes the next ones.
select r.journal from tape.runs r
where r.tenant = :tenant and r.ended_at < :before and r.parent is null
  and (select 1 from tape.runs c
    where c.root = r.journal and c.parent is not null and (c.ended_at is null or c.ended_at >= :before) limit 1) is null
  and (select 1 from tape.effects e
    where e.root = r.journal and e.role = 'inverse' and e.status not in ('COMPENSATED', 'DISCHARGED') limit 1) is null
order by r.ended_at limit :limit
for update of r skip locked
