import { onTestFinished } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { seededRandom } from "../../src/base/random.ts";
import type { ReactorDeps } from "../../src/engine/item/deps.ts";
import { LeaseKeeper } from "../../src/lease/keeper.ts";
import type { Term } from "../../src/model/lease.ts";
import { type Effect, type EffectContext, type EffectOptions, effect } from "../../src/sdk/effect.ts";
import { type AnyWorkflow, createRunner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock, settled as turns } from "../../testkit/clock.ts";
import { begin, type Holder, intent } from "../../testkit/conformance/holder.ts";
import { openBlank } from "../blank-database.ts";
import { identityOf } from "../lease/stage.ts";

export const tenant = "acme";
export const ttl = 30_000;

/** A call that reached the world. Tests count calls here. */
export interface WorldCall {
  readonly what: string;
  readonly key: string;
  readonly token: bigint;
  readonly args: unknown;
}

export interface Replica extends ReactorDeps {
  /** Names of logged events. */
  readonly logged: string[];
}

export interface Stage {
  readonly clock: ManualClock;
  readonly store: Store;
  readonly world: WorldCall[];
  /** Another process on the store, with its own keeper and owner. */
  replica(parts?: Parts): Replica;
  /** Records the call in the world, then returns the result of `then`. */
  wire(
    options?: Partial<EffectOptions<unknown, unknown>>,
    then?: (fx: EffectContext) => unknown,
  ): Effect<unknown, unknown>;
}

export interface Parts {
  readonly effects?: readonly Effect<never, unknown>[] | readonly Effect<unknown, unknown>[];
  readonly workflows?: readonly AnyWorkflow[];
  readonly store?: Store;
  readonly ttlMs?: number;
}

export async function setStage(): Promise<Stage> {
  const clock = new ManualClock();
  const store = await openSqlite({ file: ":memory:", clock, open: openBlank });
  onTestFinished(() => store.close());
  return { clock, ...stageOn(store, clock) };
}

export function stageOn(store: Store, clock: Clock): Omit<Stage, "clock"> {
  const world: WorldCall[] = [];
  let seed = 0;
  return {
    store,
    world,
    replica(parts = {}) {
      const logged: string[] = [];
      const log = (_level: string, event: string) => void logged.push(event);
      const { effects = [], workflows = [], ttlMs = ttl, store: own = store } = parts;
      const random = seededRandom(++seed);
      const identity = identityOf(`replica-${seed}`);
      const keeper = new LeaseKeeper({ store: own, identity, clock, random, log, tenant, timings: { ttlMs } });
      onTestFinished(() => keeper.close());
      return { store: own, keeper, tenant, clock, random, log, logged, runner: createRunner({ effects, workflows }) };
    },
    wire(options = {}, then = () => "sent") {
      const body = (args: unknown, fx: EffectContext): unknown => {
        world.push({ what: "wire", key: fx.key, token: fx.token, args });
        return then(fx);
      };
      return effect<unknown, unknown>("wire", body, { allowUnsafe: "the test checks", ...options });
    },
  };
}

/** A run that waits for an effect of the outbox. */
export async function waiting(
  store: Store,
  semantics: "idempotent" | "non_idempotent" | "read" = "non_idempotent",
  more: Partial<Parameters<typeof intent>[1]> = {},
): Promise<Holder> {
  const run = await begin(store);
  await run.write(intent(0, { dispatch: "outbox", semantics, key: `${run.id}:0`, ...more }));
  await run.release();
  return run;
}

/** A store whose process can die: from then on no call is sent and none returns. */
export interface Mortal {
  readonly store: Store;
  die(): void;
  /** Dies at the next such call, before or after the store executes it. */
  dieAt(call: string, when: "before" | "after"): void;
  /** Resolves when it has died at a call. */
  readonly died: Promise<void>;
}

export function mortal(store: Store): Mortal {
  let dead = false;
  let planned: { call: string; when: "before" | "after" } | undefined;
  let onDeath = () => {};
  const died = new Promise<void>((resolve) => {
    onDeath = resolve;
  });
  const silence = (): Promise<never> => {
    dead = true;
    onDeath();
    return new Promise(() => {});
  };
  const wrap = <G extends object>(group: string, methods: G): G =>
    new Proxy(methods, {
      get(target, key) {
        const method = Reflect.get(target, key) as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          const hit = planned?.call === `${group}.${String(key)}` ? planned.when : undefined;
          if (dead || hit === "before") return silence();
          const result = await Reflect.apply(method, target, args);
          return dead || hit === "after" ? silence() : result;
        };
      },
    });
  return {
    store: {
      ...store,
      intake: wrap("intake", store.intake),
      claim: wrap("claim", store.claim),
      fenced: wrap("fenced", store.fenced),
      read: wrap("read", store.read),
      onWake: () => () => {},
    },
    died,
    die: () => void silence(),
    dieAt(call, when) {
      planned = { call, when };
    },
  };
}

/** The same store, with a list of the terms that it grants to this process. */
export function granting(store: Store): { readonly store: Store; readonly terms: readonly Term[] } {
  const terms: Term[] = [];
  const claim: Store["claim"] = {
    ...store.claim,
    find: async (request) => {
      const found = await store.claim.find(request);
      terms.push(...found);
      return found;
    },
  };
  return { store: { ...store, claim }, terms };
}

/** A promise and the function that resolves it. */
export function signal<T = void>(): { readonly come: Promise<T>; give(value: T): void } {
  let give: (value: T) => void = () => {};
  const come = new Promise<T>((resolve) => {
    give = resolve;
  });
  return { come, give: (value) => give(value) };
}

/** Lets promise chains and commits finish; no time passes. */
export const calm = (): Promise<void> => turns(30);

/** The history of the effect: attempts, observations and settlements of its item's journal. */
export async function story(store: Store, run: Holder, pos = 0, sub = 0): Promise<string[]> {
  const { item } = await run.effect(pos, sub);
  const records = await store.read.journal(tenant, { journal: item! });
  return records.flatMap((record) => {
    if (record.kind === "effect.dispatched") return [`attempt ${record.data.attempt}`];
    if (record.kind === "effect.settled" || record.kind === "obligation.settled")
      return [`${record.data.to} ${record.data.reason}`];
    if (record.kind === "effect.observed") return [record.data.observation];
    return record.kind === "obligation.surplus" ? [`surplus ${record.data.sub}`] : [];
  });
}
