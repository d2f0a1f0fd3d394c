-- fenced
-- Strictly newest first: of each run concerned, the newest unsettled obligation, and only if it is waiting to be done.
-- An array, so that the leases are looked up and not joined with all items there are; the || as in run.settled.
update tape.leases set wants = 'compensation', due_at = tape.now_ms()
where owner is null and wants is null and kind || '' = 'item' and journal = any(array(
  select e.item from tape.effects e
  where e.root = (select r.root from tape.runs r where r.journal = :run)
    and e.role = 'inverse' and not e.surplus and e.status = 'PENDING'
    and (e.run = :run or e.root = :run or e.run in (
      with recursive tree(journal) as (
        select r.journal from tape.runs r where r.journal = :run
        union all select c.journal from tape.runs c join tree on c.parent = tree.journal)
      select journal from tree))
    and not exists (
      select 1 from tape.effects n where n.root = e.root and n.run = e.run and n.role = 'inverse' and not n.surplus
        and (n.pos > e.pos or (n.pos = e.pos and n.sub > e.sub))
        and n.status in ('PENDING', 'COMMITTED', 'UNKNOWN', 'STUCK'))))
