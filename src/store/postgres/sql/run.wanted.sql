-- read
-- Runs that could go on, newest first: in the order of an index of nothing but what asks for recovery. The tenant as in
-- effect.list.
select r.*, l.notes, l.owner as lease_owner, l.wants as lease_wants
from tape.leases l cross join lateral (select * from tape.runs r where r.journal = l.journal offset 0) r
where l.wants = 'recovery' and l.owner is null and l.kind || '' = 'run' and l.tenant >= :tenant and l.tenant <= :tenant
  and l.journal < :before
  and r.phase = 'LIVE'
  and (:workflow is null or r.workflow = :workflow) and (:label_key is null or r.labels::json ->> :label_key = :label_value)
order by l.tenant desc, l.journal desc limit :limit
