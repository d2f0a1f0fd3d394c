-- Queues by tenant and workflow: a look for work never walks over rows of another tenant, nor over runs of workflows that
-- it does not ask for. Leases of runs that have ended ask for nobody and need no workflow. Neither index has a column
-- that a heartbeat changes.
alter table leases add column workflow text not null default '';
update leases set workflow = (select r.workflow from runs r where r.journal = leases.journal) where kind = 'run' and open = 1;
drop index leases_due;
create index leases_due on leases(next_reactor, tenant, workflow, due_at) where next_reactor is not null;
drop index leases_held;
create index leases_held on leases(tenant, workflow) where owner is not null and kind <> 'name';
drop index timers_due;
create index timers_due on timers(tenant, due_at) where status = 'SET';
drop index schedules_due;
create index schedules_due on schedules(tenant, next_at) where next_at is not null and paused = 0;

-- Lists of one tenant: newest first, and never by way of another's rows.
create index runs_tenant on runs(tenant);
