import type { Clock } from "../src/base/clock.ts";
import { type Effect, type EffectContext, type EffectOptions, effect } from "../src/sdk/effect.ts";
import { AckLost, DefiniteFailure, NotSent, type Observation, outcome } from "../src/sdk/outcomes.ts";
import { type RequestFault, WorldLedger } from "../testkit/kit/world.ts";

/**
 * `late`: the sender is told nothing, and long after its deadline the request is carried out nevertheless. `twice`: where
 * the other side is careless it carries one request out two times, and its answer gets lost.
 */
export type SimulatedTrouble = RequestFault | "late" | "twice" | "ok";

/** What an act is asked to do, and what becomes of each attempt: part of the input, so that a seed says it all. */
export interface ActArgs {
  readonly id: string;
  readonly businessKey: string;
  /** By attempt; beyond the list all is well. */
  readonly troubles: readonly SimulatedTrouble[];
  readonly undoTroubles: readonly SimulatedTrouble[];
  /** Every answer of the act comes too late, for ever. */
  readonly stubborn: boolean;
  /** By look. */
  readonly looks: readonly ("inconclusive" | "throws" | "ok")[];
  readonly travelMs: number;
  readonly answerMs: number;
}

export type SimulatedResult = { readonly done: string };
type SimulatedEffect = Effect<ActArgs, SimulatedResult>;

/** Longer than a request travels at most, so that "absent" after the deadline and the settle delay is the truth. */
const settle = "12s";
const lateMs = 9_000;
const timeout = "4s";
const secondOf = (key: string): string => `${key}#2`;

const definitions: Readonly<Record<string, EffectOptions<ActArgs, SimulatedResult>>> = {
  "idempotent.inline": { semantics: "idempotent" },
  "idempotent.outbox": { semantics: "idempotent", dispatch: "outbox" },
  "read.inline": { semantics: "read" },
  "read.outbox": { semantics: "read", dispatch: "outbox" },
  "observed.inline": {},
  "observed.outbox": { dispatch: "outbox" },
  "undone.inline": {},
  "undone.outbox": { dispatch: "outbox" },
  "undone.idempotent": { semantics: "idempotent" },
  "undone.careless": {},
  "blind.inline": {},
};

export const effectNames = Object.keys(definitions);

/** Effects of each class on one ledger, each with trouble as its arguments say. */
export class SimulatedEffects {
  readonly ledger: WorldLedger;
  readonly all: readonly SimulatedEffect[];
  readonly #clock: Clock;
  readonly #byName = new Map<string, SimulatedEffect>();
  readonly #looks = new Map<string, number>();
  /** Keys refused for good: whatever comes under them later is refused too. */
  readonly #refused = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.ledger = new WorldLedger(clock);
    for (const [name, options] of Object.entries(definitions)) this.#byName.set(name, this.#define(name, options));
    this.all = [...this.#byName.values()];
  }

  named(name: string): SimulatedEffect {
    return this.#byName.get(name)!;
  }

  #define(name: string, options: EffectOptions<ActArgs, SimulatedResult>): SimulatedEffect {
    const dedupes = options.semantics === "idempotent";
    const observed = name.startsWith("observed") || (name.startsWith("undone") && name !== "undone.idempotent");
    const undone = name.startsWith("undone") || name.startsWith("blind");
    const more: EffectOptions<ActArgs, SimulatedResult> = {
      ...options,
      timeout,
      settle,
      retry: { attempts: 3, base: "500ms", cap: "2s" },
      ...(observed && {
        businessKey: (args: ActArgs) => args.businessKey,
        observe: async (args: ActArgs, fx: EffectContext) => this.#look(name, args, fx),
      }),
      ...(undone && {
        compensate: {
          semantics: name === "undone.idempotent" ? "idempotent" : "non_idempotent",
          run: (args: ActArgs, _: SimulatedResult, fx: EffectContext) =>
            this.#request(`undo ${name}`, args, args.undoTroubles, fx, name === "undone.idempotent"),
          ...(name !== "blind.inline" && {
            observe: async ({ args }: { args: ActArgs }, fx: EffectContext) => this.#look(`undo ${name}`, args, fx),
          }),
        },
      }),
    };
    return effect(name, (args: ActArgs, fx) => this.#request(name, args, args.troubles, fx, dedupes), more);
  }

  /** The request travels, is carried out, and its answer travels back: in the world's time, whatever its sender does. */
  async #request(
    name: string,
    args: ActArgs,
    troubles: readonly SimulatedTrouble[],
    fx: EffectContext,
    dedupes: boolean,
  ): Promise<SimulatedResult> {
    const careless = name === "undone.careless";
    const stubborn = args.stubborn && dedupes && !name.startsWith("undo ");
    const planned = stubborn ? "lost" : (troubles[fx.attempt - 1] ?? "ok");
    const trouble = planned === "twice" && !careless ? "lost" : planned;
    if (trouble === "not_sent") throw new NotSent();
    await this.#clock.sleep(args.travelMs);
    const known = dedupes && this.ledger.seen.some((one) => one.name === name && one.key === fx.key);
    if (trouble === "refused" && !known) this.#refused.add(fx.key); // who dedupes does not refuse what it has done
    if (this.#refused.has(fx.key)) throw new DefiniteFailure("refused");
    if (trouble === "vanished") throw new AckLost("the connection broke");
    const done = { done: args.id };
    const carryOut = (): SimulatedResult =>
      dedupes ? this.ledger.applyOnce(name, fx, args.id, () => done) : this.ledger.apply(name, fx, args.id, () => done);
    if (trouble === "late") {
      this.#clock.after(lateMs, () => {
        if (!this.#refused.has(fx.key)) carryOut();
      });
      throw new AckLost("the connection broke, the request did not");
    }
    const result = carryOut();
    await this.#clock.sleep(fx.attempt > 3 ? 5 : args.answerMs); // an upstream that is always too slow is no fair test
    if (trouble === "twice") this.ledger.apply(name, { ...fx, key: secondOf(fx.key) }, args.id, () => done);
    if (trouble === "lost" || trouble === "twice") throw new AckLost();
    return result;
  }

  async #look(name: string, args: ActArgs, fx: EffectContext): Promise<Observation<SimulatedResult>> {
    const look = this.#looks.get(fx.key) ?? 0;
    this.#looks.set(fx.key, look + 1);
    await this.#clock.sleep(args.answerMs / 4);
    const how = args.looks[look] ?? "ok";
    if (how === "throws") throw new Error("the observer failed");
    if (how === "inconclusive") return outcome.inconclusive("the index is behind");
    const of = (key: string) => this.ledger.seen.find((one) => one.applied && one.name === name && one.key === key);
    const [found, second] = [of(fx.key), of(secondOf(fx.key))];
    if (found === undefined) return outcome.absent();
    const result = found.result as SimulatedResult;
    return second === undefined ? outcome.confirmed(result) : outcome.duplicate(result, [{ second: second.key }]);
  }
}
