-- read
-- Answers only if nothing of the run is open. :armed: armed obligations count as open (the run did not end well).
-- A run answers for the obligations of everything below it; who is below is asked only if the tree owes something.
select 1 as ok where not exists (
    select 1 from effects e where e.run = :journal and e.role = 'act'
      and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK'))
  and not exists (
    select 1 from effects e where e.root = (select r.root from runs r where r.journal = :journal)
      and e.role = 'inverse' and e.surplus = 0
      and (e.status in ('PENDING', 'COMMITTED', 'UNKNOWN', 'STUCK') or (:armed and e.status = 'ARMED'))
      and (e.run = :journal or e.root = :journal or e.run in (
        with recursive tree(journal) as (select :journal union all select c.journal from runs c join tree on c.parent = tree.journal)
        select journal from tree)))
  and not exists (select 1 from gates g where g.run = :journal and g.status = 'OPEN')
  and not exists (select 1 from timers t where t.run = :journal and t.status = 'SET')
  and not exists (select 1 from runs c where c.parent = :journal and c.ended_at is null)
