import type { Clock } from "../src/base/clock.ts";
import { type Effect, type EffectContext, type EffectOptions, effect } from "../src/sdk/effect.ts";
import { AckLost, DefiniteFailure, NotSent, type Observation, outcome } from "../src/sdk/outcomes.ts";
import { type RequestFault, WorldLedger } from "../testkit/kit/world.ts";

/**
 * `late`: the sender gets no response, and the request is applied long after its deadline. `twice`: a careless upstream
 * applies the request twice, and its response is lost.
 */
export type SimulatedFault = RequestFault | "late" | "twice" | "ok";

/**
 * What an effect does and what happens to each attempt. It is part of the run's input, so that the seed decides all of
 * it.
 */
export interface EffectArgs {
  readonly id: string;
  readonly businessKey: string;
  /** By attempt; attempts beyond the list succeed. */
  readonly faults: readonly SimulatedFault[];
  readonly compensateFaults: readonly SimulatedFault[];
  /** Every response is lost. */
  readonly unresponsive: boolean;
  /** By observation. */
  readonly observations: readonly ("inconclusive" | "throws" | "ok")[];
  readonly travelMs: number;
  readonly answerMs: number;
}

export type SimulatedResult = { readonly done: string };
type SimulatedEffect = Effect<EffectArgs, SimulatedResult>;

/** Longer than any request travels, so that "absent" after the deadline and the settle delay is true. */
const settle = "12s";
const lateMs = 9_000;
const timeout = "4s";
const secondOf = (key: string): string => `${key}#2`;

const definitions: Readonly<Record<string, EffectOptions<EffectArgs, SimulatedResult>>> = {
  "idempotent.inline": { semantics: "idempotent" },
  "idempotent.outbox": { semantics: "idempotent", dispatch: "outbox" },
  "read.inline": { semantics: "read" },
  "read.outbox": { semantics: "read", dispatch: "outbox" },
  "observed.inline": {},
  "observed.outbox": { dispatch: "outbox" },
  "compensable.inline": {},
  "compensable.outbox": { dispatch: "outbox" },
  "compensable.idempotent": { semantics: "idempotent" },
  "compensable.careless": {},
  "blind.inline": {},
};

export const effectNames = Object.keys(definitions);

/** Long enough for a run to end meanwhile. Not among {@link effectNames}: plans without them stay unchanged. */
const longBackoff = { attempts: 3, base: "8s", cap: "8s" } as const;
const slowDefinitions: typeof definitions = {
  "compensable.slow.inline": { semantics: "idempotent", retry: longBackoff },
  "compensable.slow.outbox": { semantics: "idempotent", dispatch: "outbox", retry: longBackoff },
  "idempotent.slow.inline": { semantics: "idempotent", retry: longBackoff },
  "idempotent.slow.outbox": { semantics: "idempotent", dispatch: "outbox", retry: longBackoff },
};

export const slowEffectNames = Object.keys(slowDefinitions);

/** Effects of every kind on one ledger. Their arguments decide what goes wrong. */
export class SimulatedEffects {
  readonly ledger: WorldLedger;
  readonly all: readonly SimulatedEffect[];
  readonly #clock: Clock;
  readonly #byName = new Map<string, SimulatedEffect>();
  readonly #observations = new Map<string, number>();
  /** Keys that were refused: every later request under them is refused too. */
  readonly #refused = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.ledger = new WorldLedger(clock);
    for (const [name, options] of Object.entries({ ...definitions, ...slowDefinitions }))
      this.#byName.set(name, this.#define(name, options));
    this.all = [...this.#byName.values()];
  }

  named(name: string): SimulatedEffect {
    return this.#byName.get(name)!;
  }

  #define(name: string, options: EffectOptions<EffectArgs, SimulatedResult>): SimulatedEffect {
    const dedupes = options.semantics === "idempotent";
    const observed =
      name.startsWith("observed") || (name.startsWith("compensable") && name !== "compensable.idempotent");
    const compensable = name.startsWith("compensable") || name.startsWith("blind");
    const more: EffectOptions<EffectArgs, SimulatedResult> = {
      retry: { attempts: 3, base: "500ms", cap: "2s" },
      ...options,
      timeout,
      settleDelay: settle,
      ...(observed && {
        businessKey: (args: EffectArgs) => args.businessKey,
        observe: async (args: EffectArgs, fx: EffectContext) => this.#observe(name, args, fx),
      }),
      ...(compensable && {
        compensate: {
          semantics: name === "compensable.idempotent" ? "idempotent" : "non_idempotent",
          run: (args: EffectArgs, _: SimulatedResult, fx: EffectContext) =>
            this.#request(`compensate ${name}`, args, args.compensateFaults, fx, name === "compensable.idempotent"),
          ...(name !== "blind.inline" && {
            observe: async ({ args }: { args: EffectArgs }, fx: EffectContext) =>
              this.#observe(`compensate ${name}`, args, fx),
          }),
        },
      }),
    };
    return effect(name, (args: EffectArgs, fx) => this.#request(name, args, args.faults, fx, dedupes), more);
  }

  /** The request travels, is applied, and its response travels back, whatever its sender does meanwhile. */
  async #request(
    name: string,
    args: EffectArgs,
    faults: readonly SimulatedFault[],
    fx: EffectContext,
    dedupes: boolean,
  ): Promise<SimulatedResult> {
    const careless = name === "compensable.careless";
    const unresponsive = args.unresponsive && dedupes && !name.startsWith("compensate ");
    const planned = unresponsive ? "lost" : (faults[fx.attempt - 1] ?? "ok");
    const fault = planned === "twice" && !careless ? "lost" : planned;
    if (fault === "not_sent") throw new NotSent();
    await this.#clock.sleep(args.travelMs);
    const known = dedupes && this.ledger.seen.some((one) => one.name === name && one.key === fx.key);
    if (fault === "refused" && !known) this.#refused.add(fx.key); // an upstream that deduplicates does not refuse what it has applied
    if (this.#refused.has(fx.key)) throw new DefiniteFailure("refused");
    if (fault === "vanished") throw new AckLost("the connection broke");
    const done = { done: args.id };
    const apply = (): SimulatedResult =>
      dedupes ? this.ledger.applyOnce(name, fx, args.id, () => done) : this.ledger.apply(name, fx, args.id, () => done);
    if (fault === "late") {
      this.#clock.after(lateMs, () => {
        if (!this.#refused.has(fx.key)) apply();
      });
      throw new AckLost("the connection broke, the request did not");
    }
    const result = apply();
    await this.#clock.sleep(fx.attempt > 3 ? 5 : args.answerMs); // an upstream that is always too slow is no fair test
    if (fault === "twice") this.ledger.apply(name, { ...fx, key: secondOf(fx.key) }, args.id, () => done);
    if (fault === "lost" || fault === "twice") throw new AckLost();
    return result;
  }

  async #observe(name: string, args: EffectArgs, fx: EffectContext): Promise<Observation<SimulatedResult>> {
    const count = this.#observations.get(fx.key) ?? 0;
    this.#observations.set(fx.key, count + 1);
    await this.#clock.sleep(args.answerMs / 4);
    const how = args.observations[count] ?? "ok";
    if (how === "throws") throw new Error("the observer failed");
    if (how === "inconclusive") return outcome.inconclusive("the index is behind");
    const of = (key: string) => this.ledger.seen.find((one) => one.applied && one.name === name && one.key === key);
    const [found, second] = [of(fx.key), of(secondOf(fx.key))];
    if (found === undefined) return outcome.absent();
    const result = found.result as SimulatedResult;
    return second === undefined ? outcome.confirmed(result) : outcome.duplicate(result, [{ second: second.key }]);
  }
}
