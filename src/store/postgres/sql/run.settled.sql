-- read
-- Answers only if nothing of the run is open. :armed: armed obligations count as open (the run did not end well).
-- A run answers for the obligations of everything below it; who is below is asked only if the tree owes something. The ||
-- keeps the planner from the index of all open gates or set timers, of whatever run, which it prefers as long as the
-- tables have not been analysed.
select 1 as ok where not exists (
    select 1 from tape.effects e where e.run = :journal and e.role = 'act'
      and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK'))
  and not exists (
    select 1 from tape.effects e where e.root = (select r.root from tape.runs r where r.journal = :journal)
      and e.role = 'inverse' and not e.surplus
      and (e.status in ('PENDING', 'COMMITTED', 'UNKNOWN', 'STUCK') or (:armed and e.status = 'ARMED'))
      and (e.run = :journal or e.root = :journal or e.run in (
        with recursive tree(journal) as (
          select r.journal from tape.runs r where r.journal = :journal
          union all select c.journal from tape.runs c join tree on c.parent = tree.journal)
        select journal from tree)))
  and not exists (select 1 from tape.gates g where g.run = :journal and g.status || '' = 'OPEN')
  and not exists (select 1 from tape.timers t where t.run = :journal and t.status || '' = 'SET')
  and not exists (select 1 from tape.runs c where c.root = (select r.root from tape.runs r where r.journal = :journal)
    and c.parent = :journal and c.ended_at is null)
