import type { CrashMode, CrashOptions } from "./crash-options.ts";
import type { Boundary } from "./process.ts";
import { roundFaults } from "./round.ts";
import { runRound } from "./run-round.ts";

/**
 * The totals of a {@link crashAtEveryBoundary} run.
 *
 * @example
 * const { rounds, reached, statuses } = await crashAtEveryBoundary({ workflow, input, runner });
 */
export interface CrashReport {
  /** Every point at which the process was interrupted. */
  readonly boundaries: readonly string[];
  /** How many rounds were executed. */
  readonly rounds: number;
  /** Rounds that reached their boundary. In virtual time, with a deterministic workflow, all of them do. */
  readonly reached: number;
  /** How the runs ended, by status. */
  readonly statuses: Readonly<Record<string, number>>;
}

/**
 * Runs a workflow once and counts its store calls and effects. Then runs it again for each of them: with the process
 * crashed just before and just after it, and with the process paused there and resumed too late. A second process takes
 * over.
 *
 * Checks after each round: no non-idempotent effect happened twice and none was lost. The outcome is the one without a
 * crash; or the run failed because an effect did not happen, and everything was compensated; or it is STUCK on an effect
 * in doubt. The tables are the fold of the records. Throws with the list of boundaries at which a check failed.
 *
 * @example
 * await crashAtEveryBoundary({ workflow: treasury, input: { invoice: "7" }, runner, ledger: bank });
 */
export async function crashAtEveryBoundary<I, O>(options: CrashOptions<I, O>): Promise<CrashReport> {
  const first = new BoundaryCount();
  const calm = await runRound(options, "calm", (boundary) => {
    first.add(boundary);
    return undefined;
  });
  const faults = (await roundFaults(calm, calm, options.outcome)).map((fault) => `without a crash: ${fault}`);
  const statuses: Record<string, number> = {};
  if (faults.length > 0) throw new Error(`${faults.length} faults in 0 rounds:\n${faults.slice(0, 20).join("\n")}`);
  const totals = await interruptAll(first.all, options, async (name, crashPointAt) => {
    const round = await runRound(options, name, crashPointAt);
    const { status } = round.run;
    statuses[status] = (statuses[status] ?? 0) + 1;
    return { reached: round.reached, faults: await roundFaults(round, calm, options.outcome) };
  });
  return { boundaries: first.all, ...totals, statuses };
}

/** One round of something that is interrupted where `crashPointAt` says so. */
export type BoundaryRound = (
  name: string,
  crashPointAt: (boundary: Boundary) => CrashMode | undefined,
) => Promise<{ readonly reached: boolean; readonly faults: readonly string[] }>;

/**
 * The loop of {@link crashAtEveryBoundary} for anything that runs in a TestProcess: one round without a crash, and
 * then one for each boundary and mode. Throws with the list of boundaries at which a round found a fault.
 */
export async function atEveryBoundary(
  round: BoundaryRound,
  options: Pick<CrashOptions<never, never>, "modes" | "only"> = {},
): Promise<Omit<CrashReport, "statuses">> {
  const first = new BoundaryCount();
  const { faults } = await round("calm", (boundary) => {
    first.add(boundary);
    return undefined;
  });
  if (faults.length > 0) throw new Error(`without a crash: ${faults.slice(0, 20).join("\n")}`);
  return { boundaries: first.all, ...(await interruptAll(first.all, options, round)) };
}

async function interruptAll(
  boundaries: readonly string[],
  { modes = ["crash", "zombie"], only }: Pick<CrashOptions<never, never>, "modes" | "only">,
  round: BoundaryRound,
): Promise<Pick<CrashReport, "rounds" | "reached">> {
  const faults: string[] = [];
  let rounds = 0;
  let reached = 0;
  for (const mode of modes) {
    for (const [index, boundary] of boundaries.entries()) {
      if (only?.(boundary, index) === false) continue;
      rounds++;
      const count = new BoundaryCount();
      const crashPointAt = (met: Boundary) => (count.add(met) === boundary ? mode : undefined);
      try {
        const result = await round(`${mode}-${index}`, crashPointAt);
        if (result.reached) reached++;
        for (const fault of result.faults) faults.push(`${mode} ${boundary}: ${fault}`);
      } catch (error) {
        faults.push(`${mode} ${boundary}: ${(error as Error).message}`);
      }
    }
  }
  if (faults.length > 0)
    throw new Error(`${faults.length} faults in ${rounds} rounds:\n${faults.slice(0, 20).join("\n")}`);
  return { rounds, reached };
}

/** Names the boundaries that matter. A poll that finds no work is not one. */
class BoundaryCount {
  readonly all: string[] = [];
  readonly #counts = new Map<string, number>();

  add(boundary: Boundary): string | undefined {
    const { what, name, edge, result } = boundary;
    if (what === "store" && (notCounted.has(name) || name.startsWith("read.due"))) return undefined;
    if (name === "claim.find" && !(edge === "after" && Array.isArray(result) && result.length > 0)) return undefined;
    const k = (this.#counts.get(`${name} ${edge}`) ?? 0) + 1;
    this.#counts.set(`${name} ${edge}`, k);
    const text = `${edge} ${what === "effect" ? "effect " : ""}${name} #${k}`;
    this.all.push(text);
    return text;
  }
}

const notCounted = new Set(["claim.renew", "read.agenda", "read.now", "read.progress", "read.runs", "read.unserved"]);
