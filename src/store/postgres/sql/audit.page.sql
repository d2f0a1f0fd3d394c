-- read
-- What people did, newest first. What concerns no journal of a tenant's is in the store's own and names the tenant. (A
-- CASE, because bodies of users may hold what `json` cannot turn into text.)
select a.* from (
  select r.stamp, r.journal, r.seq, cast(r.token as text) as token, r.at, r.kind, r.body,
    case when r.journal = 1 then coalesce(r.body::json #>> '{detail,tenant}', '') else l.tenant end as tenant,
    coalesce((select u.id from tape.runs u where u.journal = l.run), (select n.name from tape.names n where n.journal = r.journal)) as subject
  from tape.records r cross join lateral (select l.tenant, l.run from tape.leases l where l.journal = r.journal limit 1) l
  where r.kind = 'operator.acted' and (r.stamp, r.journal, r.seq) < (:stamp, :journal, :seq) and r.stamp <= :stamp) a
where :tenant is null or a.tenant = :tenant
order by a.stamp desc, a.journal desc, a.seq desc limit :limit
