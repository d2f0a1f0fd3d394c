-- read
select l.*, cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now,
  coalesce(n.name, r.id) as name
from tape.leases l left join tape.names n on n.journal = l.journal left join tape.runs r on r.journal = l.journal and l.kind = 'run'
where l.tenant = :tenant and l.kind <> 'store' and (l.owner is not null or not :held)
order by l.journal desc limit :limit
