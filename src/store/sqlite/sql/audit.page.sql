-- read
-- What people did, newest first. What concerns no journal of a tenant's is in the store's own and names the tenant.
select a.* from (
  select r.id, r.journal, r.seq, cast(r.token as text) as token, r.at, r.kind, r.body,
    case when r.journal = 1 then coalesce(json_extract(r.body, '$.detail.tenant'), '') else l.tenant end as tenant,
    coalesce((select u.id from runs u where u.journal = l.run), (select n.name from names n where n.journal = r.journal)) as subject
  from records r indexed by records_operator cross join leases l on l.journal = r.journal
  where r.kind = 'operator.acted' and r.id < :before) a
where :tenant is null or a.tenant = :tenant
order by a.id desc limit :limit
