-- Lists of runs by when they began and of those with something in doubt, and counts of how many began when.
create index runs_created on tape.runs(tenant, created_at, journal);
create index effects_doubt on tape.effects(tenant, run) where status in ('UNKNOWN', 'STUCK');

-- Those that are not under way and did not end well: few, and what people look for.
create index runs_phase on tape.runs(tenant, phase, journal) where phase not in ('LIVE', 'COMPLETED');

-- By the beginning of their id: in the order of its bytes, whatever the database's collation, as on every other store.
alter table tape.runs alter column id type text collate "C";

-- Caps of a tenant's runs, newest first.
alter table tape.budgets add column tenant text not null default '';
update tape.budgets b set tenant = r.tenant from tape.runs r where r.journal = b.run;
create index budgets_tenant on tape.budgets(tenant, run);
