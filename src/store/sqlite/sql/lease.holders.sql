-- read
-- lease.queues, of what is held.
with recursive q(journal) as (
  select (select l.journal from leases l where l.owner is not null and l.kind <> 'name' and l.tenant >= coalesce(:tenant, '')
    order by l.tenant, l.workflow limit 1)
  union all
  select coalesce(
    (select l.journal from leases l where l.owner is not null and l.kind <> 'name' and l.tenant = x.tenant
      and l.workflow > x.workflow order by l.workflow limit 1),
    (select l.journal from leases l where :tenant is null and l.owner is not null and l.kind <> 'name'
      and l.tenant > x.tenant order by l.tenant, l.workflow limit 1))
  from q cross join leases x on x.journal = q.journal
  limit :limit)
select l.tenant, l.workflow from q cross join leases l on l.journal = q.journal where :tenant is null or l.tenant = :tenant
