-- read
-- Of one tenant, newest first: what is held, or its named leases, its newest runs and what belongs to those.
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.wants, l.due_at, l.last_end, l.workflow,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, :now as now,
  coalesce((select n.name from names n where n.journal = l.journal), (select r.id from runs r where r.journal = l.journal and l.kind = 'run')) as name
from (
    select n.journal from names n where n.tenant = :tenant
    union all select h.journal from leases h indexed by leases_held
      where :held and h.owner is not null and h.kind <> 'name' and h.tenant = :tenant
    union all select d.journal from (select journal from runs where not :held and tenant = :tenant order by created_at desc, journal desc limit :limit) d
    union all select i.journal from (select journal from runs where not :held and tenant = :tenant order by created_at desc, journal desc limit :limit) d
      cross join leases i on i.run = d.journal and i.kind = 'item') x
  cross join leases l on l.journal = x.journal
where l.owner is not null or not :held
order by l.journal desc limit :limit
