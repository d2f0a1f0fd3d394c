-- read
-- lease.read, of the runs of one page: one look for all.
select l.*, cast(l.token as text) as token, cast(l.nonce as text) as nonce, :now as now,
  (select r.id from runs r where r.journal = l.journal) as name
from json_each(:journals) i cross join leases l on l.journal = i.value
