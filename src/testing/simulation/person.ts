import { type Random, seededRandom } from "../../base/random.ts";
import type { Tape } from "../../host/tape.ts";
import { isTapeError } from "../../model/errors.ts";
import type { EffectRow } from "../../model/rows.ts";
import type { Resolution } from "../../reactor/resolve.ts";
import type { WorldLedger } from "../kit/world.ts";
import { type Stage, tenant } from "./replica.ts";

/** Longer than a request is under way at most: what is not in the ledger by then never will be. */
const surelyMs = 30_000;
/** A replica that does not answer by then is dead or stopped: another may be asked. */
const answerMs = 3_000;

/** Refusals that a person meets in a world of many: somebody was faster, or the store was away. */
const fine: ReadonlySet<string> = new Set([
  "TAPE_ILLEGAL_TRANSITION",
  "TAPE_LEASE_HELD",
  "TAPE_LEASE_LOST",
  "TAPE_FENCED",
  "TAPE_STORE_UNREACHABLE",
  "TAPE_OUTCOME_UNKNOWN",
  "TAPE_STORE_CLOSED",
]);

/** Somebody who looks into the world's ledger and settles what nobody else can. Never guesses either. */
export class Person {
  readonly #stage: Stage;
  readonly #ledger: WorldLedger;
  readonly #tapes: () => readonly Tape[];
  readonly #random: Random;
  readonly faults: string[] = [];

  constructor(stage: Stage, ledger: WorldLedger, tapes: () => readonly Tape[]) {
    this.#stage = stage;
    this.#ledger = ledger;
    this.#tapes = tapes;
    this.#random = seededRandom(`person ${stage.plan.seed}`);
  }

  /** true: something is, or will be, for this person to settle. */
  async round(): Promise<boolean> {
    if (!this.#stage.plan.person) return false;
    const { store } = this.#stage;
    const doubts = await store.read.effects(tenant, { status: ["STUCK", "UNKNOWN"] });
    if (doubts.length === 0) return false;
    const now = await store.read.now();
    const runs = await store.read.runs(tenant);
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
    if (found !== undefined) return { as: "happened", value: found.result };
    if (ageMs < surelyMs) return "later";
    // A sender that was stopped before it sent may still send: who has it done again would have it done twice.
    const stopped = this.#stage.plan.faults.some((one) => one.strike === "pause" && one.at === "act");
    if (doubt.name === null) return { as: "happened" }; // undone by hand
    if (doubt.role === "inverse") return stopped ? "never" : { as: "again" };
    return stopped || this.#random.int(2) === 0 ? { as: "failed" } : { as: "again" };
  }

  async #resolve(run: string, { pos, sub }: EffectRow, resolution: Resolution): Promise<void> {
    const tapes = this.#tapes();
    const tape = tapes[this.#random.int(Math.max(1, tapes.length))];
    if (tape === undefined) return;
    const resolving = { run, pos, sub, resolution, by: "person", reason: "looked into the ledger" };
    const asked = tape.resolve(resolving).catch((error: unknown) => {
      if (!isTapeError(error) || !fine.has(error.code)) this.faults.push(`a person was told: ${String(error)}`);
    });
    await Promise.race([asked, this.#stage.time.sleep(answerMs)]);
  }
}
