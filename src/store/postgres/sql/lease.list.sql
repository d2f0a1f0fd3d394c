-- read
-- Of one tenant, newest first: what is held, or its named leases, its newest runs and what belongs to those.
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.wants, l.due_at, l.last_end, l.workflow,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now,
  coalesce((select n.name from tape.names n where n.journal = l.journal limit 1),
    (select r.id from tape.runs r where r.journal = l.journal and l.kind = 'run')) as name
from (
    select n.journal from tape.names n where n.tenant = :tenant
    union all select h.journal from tape.leases h where :held and h.owner is not null and h.kind <> 'name' and h.tenant = :tenant
    union all (select r.journal from tape.runs r where not :held and r.tenant = :tenant
      order by r.created_at desc, r.journal desc limit :limit)
    union all select i.journal from (
        select r.journal from tape.runs r where not :held and r.tenant = :tenant
        order by r.created_at desc, r.journal desc limit :limit) r
      cross join lateral (select i.journal from tape.leases i where i.run = r.journal and i.kind = 'item' offset 0) i) x
  cross join lateral (select l.journal, l.kind, l.tenant, l.run, l.token, l.nonce, l.owner, l.label, l.reactor, l.ttl_ms,
    l.expires_at, l.acquired_at, l.reason, l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at,
    l.progress_note, l.max_stall_ms, l.doomed, l.paused, l.stalled, l.notes, l.open, l.wants, l.due_at, l.last_end,
    l.workflow from tape.leases l where l.journal = x.journal offset 0) l
where l.owner is not null or not :held
order by l.journal desc limit :limit
