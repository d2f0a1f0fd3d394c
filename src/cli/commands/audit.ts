import { defined } from "../../base/defined.ts";
import { checkAudit } from "../../store/audit.ts";
import type { AuditEntry, Store } from "../../store/contract/store.ts";
import { outputOption, storeOptions, wholeOf, withApp } from "../app.ts";
import type { Command } from "../command.ts";
import { printJson, printRows, timeOf, wantsJson } from "../output.ts";

const ls: Command = {
  name: "audit",
  summary: "lists operator actions and rejected attempts, newest first; -o json exports the whole log",
  options: {
    limit: { value: "N", help: "maximum number of rows (default 50; with -o json: all)" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const limit =
        wholeOf("--limit", invocation.text("limit")) ?? (wantsJson(invocation) ? Number.POSITIVE_INFINITY : 50);
      const entries = await newest(store, tenant, limit);
      printRows(
        invocation,
        entries.map(({ cursor: _cursor, ...entry }) => entry),
        [
          { title: "AT", of: ({ at }) => timeOf(at) },
          { title: "OPERATOR", of: ({ by, via }) => (via?.channel === "mcp" ? `${by} via mcp` : by) },
          { title: "TOKEN", of: ({ via }) => via?.token ?? "" },
          { title: "FROM", of: ({ via }) => via?.address ?? "" },
          { title: "ACTION", of: ({ action }) => action },
          { title: "SUBJECT", of: ({ subject }) => subject ?? "" },
          { title: "REASON", of: ({ reason }) => reason },
        ],
        "no operator actions yet",
      );
      return 0;
    }),
};

const verify: Command = {
  name: "audit verify",
  summary: "verifies the hash of every entry; exits 1 if an entry was changed, removed or inserted",
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const entries = await newest(store, tenant, Number.POSITIVE_INFINITY);
      const found = checkAudit(entries.reverse());
      if (wantsJson(invocation)) printJson(invocation, found);
      else {
        for (const fault of found.faults) invocation.screen.line(fault);
        const { checked, unsealed, head } = found;
        const old = unsealed === 0 ? "" : `, ${unsealed} without a hash`;
        invocation.screen.line(`${checked} entries, ${found.faults.length} faults${old}`);
        if (head !== undefined) {
          invocation.screen.line(`newest: ${head.n} ${head.hash}`);
          invocation.screen.line(
            invocation.screen.dim("Keep this line elsewhere: it shows later whether the log was changed or truncated."),
          );
        }
      }
      return found.faults.length === 0 ? 0 : 1;
    }),
};

async function newest(store: Store, tenant: string, limit: number): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  while (entries.length < limit) {
    const before = entries.at(-1)?.cursor;
    const page = await store.read.audit(tenant, defined({ before }));
    if (page.length === 0) break;
    entries.push(...page);
  }
  return entries.slice(0, limit);
}

export const auditCommands: readonly Command[] = [ls, verify];
