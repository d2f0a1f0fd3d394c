-- read
-- lease.read, of many.
select l.*, cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now, r.id as name
from unnest(:journals::bigint[]) as i(journal)
cross join lateral (select l.* from tape.leases l where l.journal = i.journal limit 1) l
left join lateral (select r.id from tape.runs r where r.journal = l.journal and l.kind = 'run' limit 1) r on true
