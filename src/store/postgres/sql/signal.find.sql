-- read
-- The run, and whether a gate of this name stands open that not everybody may answer. The status as in gate.status.
select r.journal, r.root, exists(select 1 from tape.gates g
  where g.run = r.journal and g.name = :name and g.status || '' = 'OPEN' and g.approvers is not null) as restricted
from tape.runs r where r.tenant = :tenant and r.id = :id
