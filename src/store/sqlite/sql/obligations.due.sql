-- fenced
-- All of the run and of everything below it: what its finished children did is undone with it. Or the one at :pos.
update effects set status = 'PENDING', changed_at = :at
where root = (select r.root from runs r where r.journal = :run) and role = 'inverse' and status = 'ARMED'
  and case when :pos is not null then run = :run and pos = :pos and sub = :sub
    else run = :run or root = :run or run in (
      with recursive tree(journal) as (select :run union all select c.journal from runs c join tree on c.parent = tree.journal)
      select journal from tree) end
