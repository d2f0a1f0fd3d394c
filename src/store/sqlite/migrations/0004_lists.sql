-- Lists of runs by when they began and of those with something in doubt, and counts of how many began when.
create index runs_created on runs(tenant, created_at);
create index effects_doubt on effects(tenant, run) where status in ('UNKNOWN', 'STUCK');

-- Those that are not under way and did not end well: few, and what people look for.
create index runs_phase on runs(tenant, phase) where phase not in ('LIVE', 'COMPLETED');

-- Caps of a tenant's runs, newest first.
alter table budgets add column tenant text not null default '';
update budgets set tenant = coalesce((select r.tenant from runs r where r.journal = budgets.run), '');
create index budgets_tenant on budgets(tenant, run);
