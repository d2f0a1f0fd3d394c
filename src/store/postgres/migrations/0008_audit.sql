-- What operators did, apart from the journals: deleting a run does not delete it. `n` is dense in each tenant, and each
-- entry's hash covers the one before it. Entries from before this table have none.
create table tape.audit(
  id bigint generated always as identity primary key, tenant text not null, n bigint not null, at bigint not null,
  journal bigint not null, subject text collate "C", body text not null, hash text not null
);
create unique index audit_n on tape.audit(tenant, n);
create index audit_tenant on tape.audit(tenant, id);
create table tape.audit_heads(tenant text primary key, n bigint not null, hash text not null);

insert into tape.audit(tenant, n, at, journal, subject, body, hash)
select a.tenant, row_number() over (partition by a.tenant order by a.stamp, a.journal, a.seq), a.at, a.journal, a.subject, a.body, '' from (
  select r.stamp, r.journal, r.seq, r.at, r.body,
    case when r.journal = 1 then coalesce(r.body::json #>> '{detail,tenant}', '') else l.tenant end as tenant,
    coalesce((select u.id from tape.runs u where u.journal = l.run), (select n.name from tape.names n where n.journal = r.journal)) as subject
  from tape.records r cross join lateral (select l.tenant, l.run from tape.leases l where l.journal = r.journal) l
  where r.kind = 'operator.action') a
order by a.stamp, a.journal, a.seq;
insert into tape.audit_heads(tenant, n, hash) select tenant, max(n), '' from tape.audit group by tenant;
drop index tape.records_operator;
