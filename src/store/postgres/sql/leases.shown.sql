-- read
-- lease.read, of the runs of one page: one look for all.
select l.*, cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now,
  (select r.id from tape.runs r where r.journal = l.journal) as name
from json_array_elements_text(:journals::json) i(journal)
cross join lateral (select l.* from tape.leases l where l.journal = i.journal::bigint limit 1) l
