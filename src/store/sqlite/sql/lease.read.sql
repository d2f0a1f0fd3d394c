-- read
select l.*, cast(l.token as text) as token, cast(l.nonce as text) as nonce, :now as now,
  coalesce(n.name, r.id) as name
from leases l left join names n on n.journal = l.journal left join runs r on r.journal = l.journal and l.kind = 'run'
where l.journal = :journal
