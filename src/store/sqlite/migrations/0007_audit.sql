-- What operators did, apart from the journals: deleting a run does not delete it. `n` is dense in each tenant, and each
-- entry's hash covers the one before it. Entries from before this table have none.
create table audit(
  id integer primary key, tenant text not null, n integer not null, at integer not null, journal integer not null,
  subject text, body text not null, hash text not null
) strict;
create unique index audit_n on audit(tenant, n);
create index audit_tenant on audit(tenant, id);
create table audit_heads(tenant text primary key, n integer not null, hash text not null) strict, without rowid;

insert into audit(tenant, n, at, journal, subject, body, hash)
select a.tenant, row_number() over (partition by a.tenant order by a.id), a.at, a.journal, a.subject, a.body, '' from (
  select r.id, r.journal, r.at, r.body,
    case when r.journal = 1 then coalesce(json_extract(r.body, '$.detail.tenant'), '') else l.tenant end as tenant,
    coalesce((select u.id from runs u where u.journal = l.run), (select n.name from names n where n.journal = r.journal)) as subject
  from records r cross join leases l on l.journal = r.journal
  where r.kind = 'operator.action') a
order by a.id;
insert into audit_heads(tenant, n, hash) select tenant, max(n), '' from audit group by tenant;
drop index records_operator;
