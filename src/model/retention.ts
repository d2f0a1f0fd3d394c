import { TapeError } from "./errors.ts";

/** How long ended runs are kept. The operator's setting for a workflow wins over the code's, and the code's over the default. */
export interface RetentionPolicy {
  /** Milliseconds; absent: forever, unless the workflow says otherwise. */
  readonly defaultMs?: number;
  /** By workflow; null: forever. */
  readonly workflows?: Readonly<Record<string, number | null>>;
}

/** When the tree of a root that has ended is due; undefined: never. */
export function dueAtOf(
  { defaultMs, workflows = {} }: RetentionPolicy,
  root: { readonly workflow: string; readonly endedAt: number; readonly retainMs: number | null },
): number | undefined {
  const set = Object.hasOwn(workflows, root.workflow) ? workflows[root.workflow] : undefined;
  if (set === null) return undefined;
  const ms = set ?? root.retainMs ?? defaultMs;
  return ms === undefined ? undefined : root.endedAt + ms;
}

/** The same text for the same policy: a change of it dates every ended run again. */
export function policyText({ defaultMs, workflows = {} }: RetentionPolicy): string {
  const byName = Object.entries(workflows).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([defaultMs ?? null, byName]);
}

/** Longest text of a policy: it is written with every batch. */
const maxRules = 200;
const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
] as const;

function keptText(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "forever";
  const [unit, size] = units.find(([, one]) => ms >= one && ms % one === 0) ?? (["ms", 1] as const);
  return `${ms / size}${unit}`;
}

/** The policy in a few words. */
export function rulesOf({ defaultMs, workflows = {} }: RetentionPolicy): string {
  const rules = Object.entries(workflows).map(([workflow, ms]) => `${workflow} ${keptText(ms)}`);
  const text = [`default ${keptText(defaultMs)}`, ...rules].join(", ");
  return text.length <= maxRules ? text : `${text.slice(0, maxRules - 2)} …`;
}

/** The named lease of the reactor `retention`. */
export const retentionLease = "reactor retention";

/** Why a due tree stays for now. */
export const keptReasons = ["live", "unsettled", "sink", "young"] as const;
export type KeptReason = (typeof keptReasons)[number];

/** Where the reactor is, in the checkpoint of its lease: small, because it is written with every batch. */
export interface RetentionState {
  /** A hash of the policy by which runs were dated, and up to which end. */
  readonly policy: string;
  /** The policy in a few words, for operators. */
  readonly rules?: string;
  /** The store's epoch: a restored store dates its runs again. */
  readonly epoch: number;
  readonly datedAt: number;
  readonly datedJournal: number;
  /** The file that is being written, and the time up to which its trees were due. */
  readonly pending?: { readonly name: string; readonly until: number };
  /** Files that were written and not deleted from. It is part of every later name, so that none of them is used again. */
  readonly abandoned?: number;
  readonly last?: RetentionPass;
}

/** What one pass of the reactor did. */
export interface RetentionPass {
  readonly at: number;
  readonly runs: number;
  readonly bytes: number;
  readonly files: number;
  /** Due trees that stay, by reason. */
  readonly kept: Readonly<Partial<Record<KeptReason, number>>>;
  readonly error?: string;
}

export const stateText = (state: RetentionState): string => JSON.stringify({ v: 1, ...state });

/** The state in a lease's checkpoint; undefined: there is none, or it cannot be read. */
export function stateOf(text: string | undefined): RetentionState | undefined {
  try {
    const { v, ...state } = JSON.parse(text ?? "") as RetentionState & { v?: unknown };
    return v === 1 && typeof state.policy === "string" && Number.isSafeInteger(state.datedAt) ? state : undefined;
  } catch {
    return undefined;
  }
}

/** A tree changed after it was archived: nothing was deleted. */
export const treeChanged = (root: number): TapeError =>
  new TapeError("TAPE_VERSION_CONFLICT", `the tree of journal ${root} changed since it was read`, { journal: root });
