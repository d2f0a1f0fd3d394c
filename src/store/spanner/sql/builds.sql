-- macro: $backlog_of
-- The workflow of the lease `l` behind the build that its run is pinned to.
coalesce(l.build, '') || '@' || l.workflow;

-- macro: $live_of
-- Live runs that are pinned to the build `b`.
leases@{force_index=leases_build, $sparse} l where l.tenant = :tenant and l.live_build = b.build;

-- name: build.count
-- read
select count(*) as n from builds where tenant = :tenant;

-- name: build.current
-- unfenced: a setting, written from outside a run
-- writes: builds
update builds set `current` = :current where tenant = :tenant and build = :build then return build;

-- name: build.forget
-- unfenced: a build that no process has reported for long, and that has no run any more
-- writes: builds
delete from builds where tenant = :tenant and build in (select x.build from (select b.build from builds b where b.tenant = :tenant and not b.`current`
  and b.seen_at < :at - :older_ms and not exists (select 1 from $live_of)
  order by b.seen_at limit :limit) x);

-- name: build.list
-- read
-- Of one tenant, the newest first. Live runs are counted in their index: exact, now.
select b.build, b.workflows, b.`current`, b.first_at, b.seen_at, (select count(*) from $live_of) as live
from builds b where b.tenant = :tenant and (:build is null or b.build = :build) order by b.first_at desc, b.build limit :limit;

-- name: build.live
-- read
-- Whether a run that is pinned to the build has not ended.
select exists (select 1 from leases@{force_index=leases_build, $sparse} l where l.tenant = :tenant and l.live_build = :build) as live;

-- name: build.names
-- read
select build, workflows, `current` from builds where tenant = :tenant order by build;

-- name: build.runs
-- read
-- Live runs that are pinned to the build, oldest first.
select l.journal, l.workflow, (select r.id from runs r where r.journal = l.journal) as id from leases@{force_index=leases_build, $sparse} l
where l.tenant = :tenant and l.live_build = :build and l.born > :above
order by l.born limit :limit;

-- name: build.see
-- unfenced: a process reports its build; two with different workflows keep those of the last
-- writes: builds
-- Not at every call: once a minute is enough.
insert or update into builds(tenant, build, workflows, first_at, seen_at, `current`)
select x.tenant, x.build, :workflows, coalesce(v.first_at, :at), :at, coalesce(v.`current`, false)
from (select :tenant as tenant, :build as build) x left join builds v on v.tenant = x.tenant and v.build = x.build
where v.build is null or v.workflows <> :workflows or v.seen_at < :at - 60000;

-- name: build.unserved
-- read
-- Runs that wait for the processes of their build, and of which none has claimed them for a while, by build and workflow.
-- The first thousand of each build are counted: enough to show which is unserved.
select x.build, x.workflow, count(*) as runs, :now - min(x.since) as lag_ms from (
  select b.build, d.workflow, d.since from builds b cross join unnest(array(
    select as struct l.workflow, l.due_at as since from leases@{force_index=leases_due, $sparse} l
    where l.next_reactor = 'recovery@' || b.build and l.tenant = :tenant and l.due_at <= :now - :min_lag_ms and not l.paused limit 1000)) d
  where b.tenant = :tenant
  union all
  select l.build, l.workflow, l.expires_at from leases@{force_index=leases_held, $sparse} l
  where l.held = :tenant and l.build is not null and l.expires_at <= :now - :min_lag_ms) x
group by x.build, x.workflow order by x.build, x.workflow;
