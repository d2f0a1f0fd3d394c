import type { ChangeKind } from "../../model/changes.ts";
import { TapeError } from "../../model/errors.ts";
import { cutPage, payloads } from "../sql/paging.ts";
import type { Query, QueryResult } from "../sql/plan.ts";
import { effects } from "./effects.ts";
import { journals } from "./journals.ts";
import { leases } from "./leases.ts";
import { prune } from "./prune.ts";
import { queues } from "./queues.ts";
import { quotas } from "./quotas.ts";
import { runs } from "./runs.ts";
import { service } from "./service.ts";
import type { Statement, Times } from "./statement.ts";
import type { Tables } from "./tables.ts";
import { values } from "./values.ts";
import { waits } from "./waits.ts";

/** The groups, apart so that a test can see that no two have a statement of the same name. */
export const groups = [runs, leases, queues, journals, effects, waits, values, prune, quotas, service] as const;

/** All statements by name. A record kind whose change has no statement here does not compile. */
export const statements = {
  ...runs,
  ...leases,
  ...queues,
  ...journals,
  ...effects,
  ...waits,
  ...values,
  ...prune,
  ...quotas,
  ...service,
} satisfies Readonly<Record<ChangeKind, Statement>>;

/** What the SQL stores have a statement for and this one has not, with the reason. */
export const without: Readonly<Record<string, string>> = {
  "lease.doom": "no transaction stays open, so no takeover can starve behind one",
  "leases.reboot": "the leases die with the process, and the lease clock outlives it",
  "meta.boot": "as above",
  "meta.file": "it has none",
  "meta.anchor": "it lives no longer than its process, which has it",
  "migrations.add": "the tables live no longer than the code that knows them",
  "migrations.create": "as above",
  "migrations.list": "as above",
  "migrations.size": "as above",
  "witness.create": "no answer is lost between a caller and its own heap",
  "witness.find": "as above",
  "witness.purge": "as above",
};

export function answer(tables: Tables, call: Query, times: Times): QueryResult {
  if (!Object.hasOwn(statements, call.sql)) {
    throw new TapeError("TAPE_INVARIANT", `there is no statement ${call.sql}`, { name: call.sql });
  }
  // The plans give each statement the parameters its SQL file names; the statement says which those are.
  const found = statements[call.sql as keyof typeof statements](tables, call.params as never, times);
  const { pageBytes } = call.params;
  return typeof pageBytes === "number" ? cutPage(found.rows, payloads[call.sql] ?? [], pageBytes) : found;
}
