import type { RunStatus } from "../../../model/machines.ts";
import { type Census, maxCounted } from "../../contract/store.ts";
import { type Plan, queryRows } from "../plan.ts";

export function* duePlan(reactor: string, cap: number, tenant: string): Plan<number> {
  const rows = yield* queryRows("work.due", { tenant, cap });
  return Number(rows.find((row) => row.reactor === reactor)?.n ?? 0);
}

/** One statement; each row is one figure. */
export function* censusPlan(tenant: string): Plan<Census> {
  const rows = yield* queryRows("census", { tenant, cap: maxCounted });
  const figures = rows.map(({ what, label, n, ms }) => ({
    what: String(what),
    label: String(label),
    count: Number(n),
    ms: Math.max(0, Math.round(Number(ms ?? 0))),
  }));
  const of = (kind: string) => figures.filter(({ what }) => what === kind);
  return {
    reactors: of("due").map(({ label, count, ms }) => ({ reactor: label, due: count, lagMs: ms })),
    runs: of("runs").map(({ label, count }) => ({ status: label as RunStatus, count })),
    inDoubt: figures
      .filter(({ what }) => what === "effect" || what === "compensation")
      .map(({ what, label, count, ms }) => ({
        ...{ role: what as "effect" | "compensation", status: label as "UNKNOWN" | "STUCK" },
        ...{ count, ageMs: ms },
      })),
    held: of("held").map(({ label, count }) => ({ kind: label as "run" | "item" | "name", count })),
    feedBlockedMs: of("feed")[0]?.ms ?? 0,
  };
}
