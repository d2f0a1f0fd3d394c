-- read
-- Roots that ended long ago, whose whole tree did, with nothing left to undo. Trees go as one.
select r.journal from tape.runs r
where r.tenant = :tenant and r.ended_at < :before and r.parent is null
  and not exists (select 1 from tape.runs c
    where c.root = r.journal and c.parent is not null and (c.ended_at is null or c.ended_at >= :before))
  and not exists (select 1 from tape.effects e
    where e.root = r.journal and e.role = 'inverse' and e.status not in ('COMPENSATED', 'DISCHARGED'))
order by r.ended_at limit :limit
