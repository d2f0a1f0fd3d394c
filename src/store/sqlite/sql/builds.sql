-- macro: $backlog_of
-- The workflow of the lease `l` behind the build that its run is pinned to.
coalesce(l.build, '') || '@' || l.workflow;

-- name: build.count
-- read
select count(*) as n from builds where tenant = :tenant;

-- name: build.current
-- unfenced: a setting, written from outside a run
-- writes: builds
update builds set current = :current where tenant = :tenant and build = :build returning build;

-- name: build.forget
-- unfenced: a build that no process has reported for long, and that has no run any more
-- writes: builds
delete from builds where tenant = :tenant and build in (select b.build from builds b where b.tenant = :tenant and b.current = 0
  and b.seen_at < :at - :older_ms and not exists (select 1 from leases l
    where l.tenant = :tenant and l.build = b.build and l.build is not null and l.open = 1)
  order by b.seen_at limit :limit);

-- name: build.list
-- read
-- Of one tenant, the newest first. Live runs are counted in their index: exact, now.
select b.build, b.workflows, b.current, b.first_at, b.seen_at,
  (select count(*) from leases l where l.tenant = :tenant and l.build = b.build and l.build is not null and l.open = 1) as live
from builds b where b.tenant = :tenant and (:build is null or b.build = :build) order by b.first_at desc, b.build limit :limit;

-- name: build.live
-- read
-- Whether a run that is pinned to the build has not ended.
select exists (select 1 from leases l where l.tenant = :tenant and l.build = :build and l.build is not null and l.open = 1) as live;

-- name: build.names
-- read
select build, workflows, current from builds where tenant = :tenant order by build;

-- name: build.runs
-- read
-- Live runs that are pinned to the build, in the order of the index.
select l.journal, l.workflow, (select r.id from runs r where r.journal = l.journal) as id from leases l indexed by leases_build
where l.tenant = :tenant and l.build = :build and l.build is not null and l.open = 1 and l.journal > :above
order by l.journal limit :limit;

-- name: build.see
-- unfenced: a process reports its build; two with different workflows keep those of the last
-- writes: builds
-- Not at every call: once a minute is enough.
insert into builds(tenant, build, workflows, first_at, seen_at) values (:tenant, :build, :workflows, :at, :at)
on conflict(tenant, build) do update set workflows = excluded.workflows, seen_at = excluded.seen_at
where builds.workflows <> excluded.workflows or builds.seen_at < excluded.seen_at - 60000;

-- name: build.unserved
-- read
-- Runs that wait for the processes of their build, and of which none has claimed them for a while, by build and workflow.
-- The first thousand of each build are counted: enough to show which is unserved.
select x.build, x.workflow, count(*) as runs, :now - min(x.since) as lag_ms from (
  select b.build, d.workflow, d.due_at as since from builds b cross join leases d
  where b.tenant = :tenant and d.journal in (select l.journal from leases l indexed by leases_due
    where l.next_reactor = 'recovery@' || b.build and l.tenant = :tenant and l.due_at <= :now - :min_lag_ms and l.paused = 0 limit 1000)
  union all
  select l.build, l.workflow, l.expires_at from leases l indexed by leases_held
  where l.owner is not null and l.kind <> 'name' and l.tenant = :tenant and l.build is not null and l.expires_at <= :now - :min_lag_ms) x
group by x.build, x.workflow order by x.build, x.workflow;
