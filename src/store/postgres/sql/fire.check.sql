-- read
-- After a lost answer: which timers of the batch this very batch has fired. One transaction, one xmin; the witness has it.
select i.journal, false as held
from unnest(:journals::bigint[], :tenants::text[], :poses::bigint[], :purposes::text[]) as i(journal, tenant, pos, purpose)
cross join lateral (select 1 from tape.timers t where t.run = i.journal and t.pos = i.pos and t.purpose = i.purpose
  and t.tenant is not distinct from i.tenant and t.status || '' = 'FIRED' and t.xmin = (select w.xmin from tape.witness w where w.id = :id) limit 1) t
