import { type Random, seededRandom } from "../src/base/random.ts";
import type { EffectRow } from "../src/model/rows.ts";
import type { Resolution } from "../src/operator/resolve.ts";
import type { WorldLedger } from "../testkit/kit/world.ts";
import type { SimulatedOperator } from "./operator.ts";
import type { Stage } from "./stage.ts";

/** Longer than a request is under way at most: what is not in the ledger by then never will be. */
const surelyMs = 30_000;
/** Somebody who looks into the world's ledger and settles what nobody else can. Never guesses either. */
export class SimulatedResolver {
  readonly #stage: Stage;
  readonly #ledger: WorldLedger;
  readonly #operator: SimulatedOperator;
  readonly #random: Random;
  readonly #redriven = new Set<string>();
  #deeds = 0;

  constructor(stage: Stage, ledger: WorldLedger, operator: SimulatedOperator) {
    this.#stage = stage;
    this.#ledger = ledger;
    this.#operator = operator;
    this.#random = seededRandom(`person ${stage.plan.seed}`);
  }

  /** true: something is, or will be, for this person to settle. */
  async round(): Promise<boolean> {
    if (!this.#stage.plan.person) return false;
    const { lookout, time } = this.#stage;
    const { effects, runs } = await lookout.look();
    const doubts = effects.filter(({ status }) => status === "STUCK" || status === "UNKNOWN");
    const now = time.wall();
    for (const { id, status } of runs) {
      if (status !== "STUCK" || this.#redriven.has(id) || this.#random.int(3) > 0) continue;
      // Somebody who has not understood yet what it waits for: it must stick again, and do nothing else.
      this.#redriven.add(id);
      const by = `person ${++this.#deeds}`;
      await this.#operator.tell(by, "redrive", (tape) => tape.redrive(id, { by, reason: "let us see" }));
    }
    let busy = false;
    for (const doubt of doubts) {
      const resolution = this.#judge(doubt, now - doubt.changedAt);
      if (resolution === "never") continue;
      busy = true;
      const run = runs.find(({ journal }) => journal === doubt.run)?.id;
      if (resolution !== "later" && run !== undefined) await this.#resolve(run, doubt, resolution);
    }
    return busy;
  }

  #judge(doubt: EffectRow, ageMs: number): Resolution | "later" | "never" {
    const found = this.#ledger.seen.find((one) => one.applied && one.key === doubt.key);
    // Now and then a person is faster than the reconciler.
    if (doubt.status === "UNKNOWN" && (found === undefined || this.#random.int(3) > 0)) return "later";
    if (found !== undefined) return { as: "confirmed", value: found.result };
    if (ageMs < surelyMs) return "later";
    // A sender that was stopped before it sent may still send: who has it done again would have it done twice.
    const stopped = this.#stage.plan.faults.some((one) => one.strike === "pause");
    if (doubt.name === null) return { as: "confirmed" }; // undone by hand
    if (doubt.role === "compensation") return stopped ? "never" : { as: "retry" };
    return stopped || this.#random.int(2) === 0 ? { as: "failed" } : { as: "retry" };
  }

  async #resolve(run: string, { pos, sub }: EffectRow, resolution: Resolution): Promise<void> {
    const by = `person ${++this.#deeds}`;
    const resolving = { run, pos, sub, resolution, by, reason: "looked into the ledger" };
    await this.#operator.tell(by, `resolve as ${resolution.as}`, (tape) => tape.resolve(resolving));
  }
}
