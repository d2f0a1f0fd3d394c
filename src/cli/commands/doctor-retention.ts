import type { Store } from "../../store/contract/store.ts";
import { lasting, plural, timeOf } from "../output.ts";
import { type Finding, finding } from "./finding.ts";

/** A tree is archived within a few passes; one that is overdue for longer waits for something. */
const lateMs = 3_600_000;

/** Checks of the reactor `retention`; none if it has never worked for this tenant. */
export async function retentionFindings({ read }: Store, tenant: string): Promise<Finding[]> {
  const { state, due, lagMs } = await read.retention(tenant);
  if (state === undefined) return [];
  const { last, rules } = state;
  const policy = rules === undefined ? "" : `${rules}; `;
  const overdue = due === 0 ? "nothing is overdue" : `${plural(due, "tree")} due, the first for ${lasting(lagMs)}`;
  const pass = last === undefined ? "" : `, last pass ${timeOf(last.at)} with ${plural(last.runs, "run")}`;
  const failed = last?.error === undefined ? "" : `; it failed: ${last.error}`;
  const summary = `${policy}${overdue}${pass}${failed}`;
  return [
    finding(
      "archive",
      summary,
      "warn",
      failed !== "" || lagMs > lateMs ? summary : "",
      "Nothing is lost: runs stay in the store until the archive has them. Check the archive and the log of the reactor retention (retention.failed), then: durable-tape retention run --reason TEXT.",
    ),
  ];
}
