-- unfenced: what is deleted is used no more, as far as it was measured
update quotas set bytes_used = max(0, bytes_used - coalesce((select sum(octet_length(r.body)) from records r
  where r.id <= (select d.metered from quotas d where d.tenant = '') and r.journal in (
    select :run union all select -:run
    union all select j.journal from leases j where j.run = :run and j.kind = 'item'
    union all select -j.journal from leases j where j.run = :run and j.kind = 'item')), 0))
where tenant = (select l.tenant from leases l where l.journal = :run)
  and exists (select 1 from quotas d where d.tenant = '' and d.metered is not null)
