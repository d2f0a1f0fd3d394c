-- read
select l.*, cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now,
  coalesce(n.name, r.id) as name
from tape.leases l left join tape.names n on n.journal = l.journal left join tape.runs r on r.journal = l.journal and l.kind = 'run'
where l.journal = :journal
