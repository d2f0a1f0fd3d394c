export type Phase = "Provisioning" | "Ready" | "Error" | "Deleting" | "Deleted";

/** The compute backend's report about one sandbox. */
export interface Report {
  readonly id: string;
  readonly condition: "starting" | "ready" | "failed";
  readonly deleting: boolean;
}

/** The phase that follows from a trigger. A combination that is not in the table changes nothing. */
export const table = [
  { trigger: "ready", from: "Provisioning", to: "Ready", path: "watch, sweep" },
  { trigger: "failed", from: "Provisioning", to: "Error", path: "watch, sweep" },
  { trigger: "deleting", from: "any", to: "Deleting", path: "watch, sweep" },
  { trigger: "gone", from: "any", to: "Deleted", path: "sweep, after the grace period" },
] as const satisfies readonly { trigger: string; from: Phase | "any"; to: Phase; path: string }[];

export type Trigger = (typeof table)[number]["trigger"];

export function triggerOf(report: Report): Trigger | undefined {
  if (report.deleting) return "deleting";
  return report.condition === "starting" ? undefined : report.condition;
}

/** The next phase, or undefined if nothing changes. Deleted is final. */
export function next(phase: Phase, trigger: Trigger | undefined): Phase | undefined {
  const row = table.find((line) => line.trigger === trigger && (line.from === "any" || line.from === phase));
  return row === undefined || phase === "Deleted" || row.to === phase ? undefined : row.to;
}
