-- read
-- Why the fence did not answer; nothing where the journal is another tenant's.
select cast(l.token as text) as token, cast(l.nonce as text) as nonce, l.doomed or not (select tape.on_timeline(m.timeline) from tape.meta m) as doomed,
  l.kind, l.notes, l.owner, l.label, l.reactor, l.reason,
  (select max(r.seq) from tape.records r where r.journal = l.journal) as head
from tape.leases l where l.journal = :journal and l.tenant is not distinct from :tenant
