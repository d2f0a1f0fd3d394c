-- Lists of one tenant: each in the order of an index that begins with the tenant, never by way of another's rows. No
-- column of these indexes changes once the row is written, but for a run that begins or ceases to ask for its recovery.
create index effects_tenant on effects(tenant);
create index gates_tenant on gates(tenant, opened_at);
create index timers_tenant on timers(tenant, steady, due_at);
create index leases_wanted on leases(tenant) where next_reactor = 'recovery';
