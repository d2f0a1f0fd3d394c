-- fenced
-- Strictly newest first: of each run concerned, the newest unsettled obligation, and only if it is waiting to be done.
update leases set wants = 'compensation', due_at = :now
where owner is null and wants is null and kind = 'item' and journal in (
  select e.item from effects e
  where e.root = (select r.root from runs r where r.journal = :run)
    and e.role = 'inverse' and e.surplus = 0 and e.status = 'PENDING'
    and (e.run = :run or e.root = :run or e.run in (
      with recursive tree(journal) as (select :run union all select c.journal from runs c join tree on c.parent = tree.journal)
      select journal from tree))
    and not exists (
      select 1 from effects n where n.run = e.run and n.role = 'inverse' and n.surplus = 0
        and (n.pos > e.pos or (n.pos = e.pos and n.sub > e.sub))
        and n.status in ('PENDING', 'COMMITTED', 'UNKNOWN', 'STUCK')))
