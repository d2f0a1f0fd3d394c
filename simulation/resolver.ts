import { type Random, seededRandom } from "../src/base/random.ts";
import type { EffectRow } from "../src/model/rows.ts";
import type { Resolution } from "../src/operator/resolve.ts";
import type { WorldLedger } from "../testkit/kit/world.ts";
import type { SimulatedOperator } from "./operator.ts";
import type { Stage } from "./stage.ts";

/** Longer than any request travels: an effect that is not in the ledger by then never will be. */
const surelyMs = 30_000;
/** An operator who checks the ledger and resolves effects in doubt. It never guesses. */
export class SimulatedResolver {
  readonly #stage: Stage;
  readonly #ledger: WorldLedger;
  readonly #operator: SimulatedOperator;
  readonly #random: Random;
  readonly #redriven = new Set<string>();
  #actions = 0;

  constructor(stage: Stage, ledger: WorldLedger, operator: SimulatedOperator) {
    this.#stage = stage;
    this.#ledger = ledger;
    this.#operator = operator;
    this.#random = seededRandom(`person ${stage.plan.seed}`);
  }

  /** true: there is, or will be, something to resolve. */
  async round(): Promise<boolean> {
    if (!this.#stage.plan.resolver) return false;
    const { orphanWatch, time } = this.#stage;
    const { effects, runs } = await orphanWatch.read();
    const inDoubt = effects.filter(({ status }) => status === "STUCK" || status === "UNKNOWN");
    const now = time.wall();
    for (const { id, status } of runs) {
      if (status !== "STUCK" || this.#redriven.has(id) || this.#random.int(3) > 0) continue;
      // A premature redrive: the run must get stuck again, and do nothing else.
      this.#redriven.add(id);
      const by = `resolver ${++this.#actions}`;
      await this.#operator.perform(by, "redrive", (tape) => tape.redrive(id, { by, reason: "let us see" }));
    }
    let busy = false;
    for (const effect of inDoubt) {
      const resolution = this.#decide(effect, now - effect.changedAt);
      if (resolution === "never") continue;
      busy = true;
      const run = runs.find(({ journal }) => journal === effect.run)?.id;
      if (resolution !== "later" && run !== undefined) await this.#resolve(run, effect, resolution);
    }
    return busy;
  }

  #decide(effect: EffectRow, ageMs: number): Resolution | "later" | "never" {
    const found = this.#ledger.seen.find((one) => one.applied && one.key === effect.key);
    // Sometimes an operator is faster than the reconciler.
    if (effect.status === "UNKNOWN" && (found === undefined || this.#random.int(3) > 0)) return "later";
    if (found !== undefined) return { as: "confirmed", value: found.result };
    if (ageMs < surelyMs) return "later";
    // A paused sender may still send, so a retry could apply the effect twice.
    const stopped = this.#stage.plan.faults.some((one) => one.kind === "pause");
    if (effect.name === null) return { as: "confirmed" }; // compensated by hand
    if (effect.role === "compensation") return stopped ? "never" : { as: "retry" };
    return stopped || this.#random.int(2) === 0 ? { as: "failed" } : { as: "retry" };
  }

  async #resolve(run: string, { pos, sub }: EffectRow, resolution: Resolution): Promise<void> {
    const by = `resolver ${++this.#actions}`;
    const resolving = { run, pos, sub, resolution, by, reason: "checked the ledger" };
    await this.#operator.perform(by, `resolve as ${resolution.as}`, (tape) => tape.resolve(resolving));
  }
}
