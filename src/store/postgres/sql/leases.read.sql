-- read
-- lease.read, of many.
select l.*, cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now, r.id as name
from unnest(:journals::bigint[]) as i(journal) join tape.leases l on l.journal = i.journal
left join tape.runs r on r.journal = l.journal and l.kind = 'run'
