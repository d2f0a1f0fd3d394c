-- read
-- After a lost answer: which items of the batch are in their journals, under their own token.
select i.journal, l.notes
from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :afters::bigint[]) as i(journal, tenant, token, after)
cross join lateral (select 1 from tape.records r where r.journal = i.journal and r.seq = i.after + 1 and r.token = i.token limit 1) r
cross join lateral (select l.notes from tape.leases l where l.journal = i.journal and l.tenant is not distinct from i.tenant limit 1) l
