import type { CrashOptions } from "./crash-options.ts";
import type { Boundary } from "./process.ts";
import { roundFaults } from "./round.ts";
import { runRound } from "./run-round.ts";

export interface CrashReport {
  readonly boundaries: readonly string[];
  readonly rounds: number;
  /** Rounds in which the boundary was reached: all of them in virtual time, if the workflow is deterministic. */
  readonly struck: number;
  /** How the runs ended, by status. */
  readonly statuses: Readonly<Record<string, number>>;
}

/**
 * Runs a workflow once and counts its store calls and acts; then again for every one of them, with the process crashed
 * (and, in another round, stopped and resumed too late) just before and just after it. A second process takes over. After
 * each round: no non-idempotent act twice, none lost, the outcome as without the crash, or failed for an act that surely
 * did not happen and all of it undone, or stuck with a doubt that nobody can settle; and the projection is the fold of
 * the records. Throws with the list of boundaries where that does not hold.
 *
 * @example
 * await crashAtEveryBoundary({ workflow: treasury, input: { invoice: "7" }, runner, ledger: bank });
 */
export async function crashAtEveryBoundary<I, O>(options: CrashOptions<I, O>): Promise<CrashReport> {
  const first = new BoundaryCount();
  const calm = await runRound(options, "calm", (boundary) => {
    first.take(boundary);
    return undefined;
  });
  const faults = (await roundFaults(calm, calm, options.outcome)).map((fault) => `without a crash: ${fault}`);
  const statuses: Record<string, number> = {};
  let rounds = 0;
  let struck = 0;
  for (const mode of faults.length > 0 ? [] : (options.modes ?? (["crash", "zombie"] as const))) {
    for (const [index, boundary] of first.all.entries()) {
      if (options.only?.(boundary, index) === false) continue;
      rounds++;
      const count = new BoundaryCount();
      const strike = (met: Boundary) => (count.take(met) === boundary ? mode : undefined);
      try {
        const round = await runRound(options, `${mode}-${index}`, strike);
        if (round.struck) struck++;
        const { status } = round.run;
        statuses[status] = (statuses[status] ?? 0) + 1;
        for (const fault of await roundFaults(round, calm, options.outcome))
          faults.push(`${mode} ${boundary}: ${fault}`);
      } catch (error) {
        faults.push(`${mode} ${boundary}: ${(error as Error).message}`);
      }
    }
  }
  if (faults.length > 0)
    throw new Error(`${faults.length} faults in ${rounds} rounds:\n${faults.slice(0, 20).join("\n")}`);
  return { boundaries: first.all, rounds, struck, statuses };
}

/** Names the boundaries that matter: a look for work that finds none is not one. */
class BoundaryCount {
  readonly all: string[] = [];
  readonly #counts = new Map<string, number>();

  take(boundary: Boundary): string | undefined {
    const { what, name, edge, answer } = boundary;
    if (what === "store" && (idle.has(name) || name.startsWith("read.due"))) return undefined;
    if (name === "claim.find" && !(edge === "after" && Array.isArray(answer) && answer.length > 0)) return undefined;
    const k = (this.#counts.get(`${name} ${edge}`) ?? 0) + 1;
    this.#counts.set(`${name} ${edge}`, k);
    const text = `${edge} ${what === "act" ? "act " : ""}${name} #${k}`;
    this.all.push(text);
    return text;
  }
}

const idle = new Set(["claim.renew", "read.agenda", "read.now", "read.progress", "read.runs", "read.unserved"]);
