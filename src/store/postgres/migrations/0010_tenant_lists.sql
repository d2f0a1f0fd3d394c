-- online
-- Lists of one tenant: each in the order of an index that begins with the tenant, never by way of another's rows. No
-- column of these indexes changes once the row is written, but for a run that begins or ceases to ask for its recovery.
create index concurrently effects_tenant on tape.effects(tenant, run, pos, sub);
create index concurrently gates_tenant on tape.gates(tenant, opened_at);
create index concurrently timers_tenant on tape.timers(tenant, due_at);
create index concurrently leases_wanted on tape.leases(tenant, journal) where next_reactor = 'recovery';
