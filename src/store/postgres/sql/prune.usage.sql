-- unfenced: what is deleted is used no more, as far as it was measured
update tape.quotas q set bytes_used = greatest(0, q.bytes_used - coalesce((select sum(octet_length(r.body))::bigint from tape.records r
  where r.stamp <= d.metered and r.journal = any(array(
    select x.journal from (values (:run), (-:run)) x(journal)
    union all select j.journal from tape.leases j where j.run = :run and j.kind = 'item'
    union all select -j.journal from tape.leases j where j.run = :run and j.kind = 'item'))), 0))
from tape.quotas d
where d.tenant = '' and d.metered is not null and q.tenant = (select l.tenant from tape.leases l where l.journal = :run)
