-- read
-- Answers only if nothing of the run is open. :armed: armed obligations count as open (the run did not end well).
-- A root answers for the obligations of its whole tree.
select 1 as ok where not exists (
    select 1 from effects e where e.run = :journal and e.role = 'act'
      and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK'))
  and not exists (
    select 1 from effects e where e.root = (select r.root from runs r where r.journal = :journal)
      and (e.run = :journal or e.root = :journal) and e.role = 'inverse' and e.surplus = 0
      and (e.status in ('PENDING', 'COMMITTED', 'UNKNOWN', 'STUCK') or (:armed and e.status = 'ARMED')))
  and not exists (select 1 from gates g where g.run = :journal and g.status = 'OPEN')
  and not exists (select 1 from timers t where t.run = :journal and t.status = 'SET')
  and not exists (select 1 from runs c where c.parent = :journal and c.ended_at is null)
