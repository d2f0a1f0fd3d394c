-- read
-- Which queues have anything in them, of one tenant or of all: one look-up in the index for each, never a walk.
with recursive q(journal, tenant, workflow) as (
  (select l.journal, l.tenant, l.workflow from tape.leases l where l.wants = :wants and l.tenant >= coalesce(:tenant, '')
    order by l.tenant, l.workflow limit 1)
  union all
  select n.journal, n.tenant, n.workflow from q cross join lateral (
    select * from (
      (select l.journal, l.tenant, l.workflow from tape.leases l where l.wants = :wants and l.tenant = q.tenant and l.workflow > q.workflow
        order by l.workflow limit 1)
      union all
      (select l.journal, l.tenant, l.workflow from tape.leases l where :tenant is null and l.wants = :wants and l.tenant > q.tenant
        order by l.tenant, l.workflow limit 1)) e
    order by e.tenant, e.workflow limit 1) n)
select q.tenant, q.workflow from q where :tenant is null or q.tenant = :tenant limit :limit
