-- read
-- Which of these terms are over, and who came after: a term that has ended never comes back, so that nobody needs a
-- transaction to be told. Not those that are here as they were: they are locked for the moment, stalled or doomed.
select i.at, l.token, l.owner, l.label
from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[])
  with ordinality as i(journal, tenant, token, nonce, at)
left join lateral (
  select cast(h.token as text) as token, h.token = i.token and h.nonce = i.nonce as same, h.owner, h.label
  from tape.leases h where h.journal = i.journal and h.tenant is not distinct from i.tenant limit 1) l on true
where l.same is not true
