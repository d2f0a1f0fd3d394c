-- online
-- Queues by tenant and workflow: a look for work never walks over rows of another tenant, nor over runs of workflows that
-- it does not ask for. Leases of runs that have ended ask for nobody and need no workflow; runs that a process of an older
-- version creates meanwhile are in the queue without a name. Neither index has a column that a heartbeat changes.
alter table tape.leases add column if not exists workflow text not null default '';
-- in batches of tape.leases(journal)
update tape.leases l set workflow = r.workflow from tape.runs r
where r.journal = l.journal and l.kind = 'run' and l.open and l.workflow = '' and l.journal > :after and l.journal <= :until;
create index concurrently leases_queue on tape.leases(next_reactor, tenant, workflow, due_at) where next_reactor is not null;
create index concurrently leases_holders on tape.leases(tenant, workflow) where owner is not null and kind <> 'name';
create index concurrently timers_queue on tape.timers(tenant, due_at) where status = 'SET';
create index concurrently schedules_queue on tape.schedules(tenant, next_at) where next_at is not null and not paused;

-- Lists of one tenant: newest first, and never by way of another's rows.
create index concurrently runs_tenant on tape.runs(tenant, journal);

drop index concurrently if exists tape.leases_due;
drop index concurrently if exists tape.leases_held;
drop index concurrently if exists tape.timers_due;
drop index concurrently if exists tape.schedules_due;
