/** A table with rows of tenants: which of its rows `t` belong to the tenant $1. */
export interface TenantTable {
  readonly name: string;
  readonly rows: string;
  /** Numbered by each shard itself: it is not copied. */
  readonly without?: string;
}

const journals = "select l.journal from tape.leases l where l.tenant = $1";
const ofTenant = "t.tenant = $1";
const of = (column: string): string => `t.${column} in (${journals})`;

/**
 * Everything that belongs to a tenant, in the order in which it is copied. Rows are deleted in the opposite order, so
 * that the tables by which others are found exist first and last. Process reports are not copied: the next one comes
 * within seconds. `test/shards` compares the list with the schema.
 */
export const tenantTables: readonly TenantTable[] = [
  { name: "leases", rows: ofTenant },
  { name: "queues", rows: ofTenant },
  { name: "runs", rows: ofTenant },
  { name: "names", rows: ofTenant },
  // Notes of a run are under the negative number of its journal.
  {
    name: "records",
    rows: `t.journal in (${journals} union all select -l.journal from tape.leases l where l.tenant = $1)`,
  },
  { name: "note_keys", rows: of("journal") },
  { name: "replies", rows: of("journal") },
  { name: "published", rows: of("run") },
  { name: "streams", rows: of("run") },
  { name: "chunks", rows: of("run") },
  { name: "blobs", rows: of("journal") },
  { name: "budgets", rows: of("run") },
  { name: "queue_slots", rows: of("journal") },
  { name: "queue_partitions", rows: "t.queue in (select q.id from tape.queues q where q.tenant = $1)" },
  { name: "effects", rows: ofTenant },
  { name: "gates", rows: ofTenant },
  { name: "timers", rows: ofTenant },
  { name: "business_keys", rows: ofTenant },
  { name: "run_labels", rows: ofTenant },
  { name: "retention", rows: ofTenant },
  { name: "tombstones", rows: ofTenant },
  { name: "vals", rows: ofTenant },
  { name: "val_log", rows: ofTenant },
  { name: "schedules", rows: ofTenant },
  { name: "builds", rows: ofTenant },
  { name: "dead_letters", rows: ofTenant },
  { name: "quotas", rows: ofTenant },
  { name: "tokens", rows: ofTenant },
  { name: "idempotency_keys", rows: ofTenant },
  { name: "audit", rows: ofTenant, without: "id" },
  { name: "audit_heads", rows: ofTenant },
];

/** Tables without rows of tenants, or whose rows stay where they are, each with its reason. */
export const otherTables: Readonly<Record<string, string>> = {
  meta: "the shard's own identity and counters",
  migrations: "the shard's own schema",
  processes: "reports are repeated within seconds",
  witness: "marks of the shard's own transactions",
  shard_identity: "of the shard",
  shards: "of the set",
  shard_tenants: "the directory",
  shard_moves: "the directory",
  residents: "of the shard",
};
