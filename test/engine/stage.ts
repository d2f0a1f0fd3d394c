import { inspect } from "node:util";
import { expect, onTestFinished } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { RunDriver } from "../../src/engine/run-driver.ts";
import { openStore } from "../../src/host/open-store.ts";
import { LeaseKeeper } from "../../src/lease/keeper.ts";
import type { JournalRecord } from "../../src/model/records.ts";
import { compensation } from "../../src/reactor/compensation.ts";
import { outbox } from "../../src/reactor/outbox.ts";
import { reconciler } from "../../src/reactor/reconciler.ts";
import { timers } from "../../src/reactor/timers.ts";
import { type AnyWorkflow, createRunner, type Runner } from "../../src/sdk/workflow.ts";
import type { RunSpec, RunView, Store } from "../../src/store/contract/store.ts";
import { ManualClock, settled } from "../../testkit/clock.ts";
import { openBlank } from "../blank-database.ts";

export const tenant = "t";
export const ttlMs = 30_000;

/** One process: a keeper, a run driver and the reactors. */
export interface Process {
  readonly worker: RunDriver;
  readonly keeper: LeaseKeeper;
  readonly store: Store;
  start(workflow: AnyWorkflow, input?: unknown, more?: Partial<RunSpec>): Promise<string>;
  /** The process crashes: no call of its store returns any more. */
  crash(): void;
  /** Runs reactors and virtual time until the condition holds. */
  until(done: () => boolean | Promise<boolean>): Promise<void>;
  /** The same, until the run has ended or is STUCK. */
  over(run: string): Promise<RunView>;
  reactors(): Promise<void>;
}

export interface Stage {
  readonly clock: ManualClock;
  readonly store: Store;
  readonly logged: { level: string; event: string; fields: Record<string, unknown> }[];
  process(runner: Runner | readonly AnyWorkflow[], options?: ProcessOptions): Process;
  records(run: string): Promise<JournalRecord[]>;
  notes(run: string): Promise<JournalRecord[]>;
  kinds(run: string): Promise<string[]>;
  run(run: string): Promise<RunView>;
}

export interface ProcessOptions {
  readonly store?: Store;
  readonly concurrency?: number;
  readonly seed?: number | string;
  readonly ttlMs?: number;
  readonly patienceMs?: number;
}

let runs = 0;

type Reach = (store: Store) => Promise<Store>;
let reach: Reach = async (store) => store;
/** Turns of the event loop until a process is idle, before virtual time advances. */
let turns = 3;

let share = 1;

/** How many of these seeds to run: over the wire one in twenty of them. */
export const seeds = (count: number): number => Math.ceil(count * share);

/** Every later stage reaches its store through this: test/client runs the same tests over the wire. */
export function reachThrough(way: Reach, turnsOnTheWay: number): void {
  reach = way;
  turns += turnsOnTheWay;
  share = 0.05;
}

export async function stage(options: { limits?: object; store?: Store; clock?: ManualClock } = {}): Promise<Stage> {
  const clock = options.clock ?? new ManualClock();
  const random = seededRandom("store");
  const opened = { clock, random, open: openBlank, ...(options.limits && { limits: options.limits }) };
  const behind = options.store ?? (await openStore("memory:", opened));
  const store = options.store ?? (await reach(behind));
  if (options.store === undefined) {
    onTestFinished(async () => {
      await store.close();
      await behind.close();
    });
  }
  const logged: Stage["logged"] = [];
  const log = (level: string, event: string, fields: Record<string, unknown> = {}): void => {
    logged.push({ level, event, fields });
  };
  let processes = 0;
  const built: Stage = {
    clock,
    store,
    logged,
    process(given, more = {}) {
      const runner = "workflows" in given ? given : createRunner({ workflows: given });
      const own = killable(more.store ?? store);
      const n = ++processes;
      const seeded = seededRandom(`${more.seed ?? "seed"} ${n}`);
      const identity = { owner: `owner-${n}-${seeded.int(2 ** 40)}`, label: `process ${n}` };
      const deps = { store: own.store, tenant, clock, random: seeded, log, runner };
      const keeper = new LeaseKeeper({ ...deps, identity, timings: { ttlMs: more.ttlMs ?? ttlMs } });
      const worker = new RunDriver({
        ...deps,
        keeper,
        concurrency: more.concurrency ?? 2_000,
        ...(more.patienceMs !== undefined && { patienceMs: more.patienceMs }),
      });
      const all = [timers, outbox, reconciler, compensation].map((make) => make({ ...deps, keeper }));
      const reactors = async (): Promise<void> => {
        await worker.poll(1_000);
        for (const reactor of all) await reactor.runOnce(1_000);
      };
      const until: Process["until"] = async (done) => {
        for (let k = 0; k < 3_000; k++) {
          if (await done()) return;
          await reactors();
          await settled(turns);
          if (await done()) return;
          await clock.elapse(k < 50 ? 20 : 500);
        }
        throw new Error(`the condition never held; driving ${worker.driving}: ${inspect(logged.slice(-5))}`);
      };
      return {
        worker,
        keeper,
        store: own.store,
        async start(workflow, input = null, spec = {}) {
          const id = spec.id ?? `run-${++runs}`;
          const [verdict] = await worker.start([{ id, workflow: workflow.name, input, ...spec }]);
          if (verdict?.ok !== true) throw verdict?.error;
          return id;
        },
        crash: () => own.kill(keeper),
        until,
        reactors,
        async over(id) {
          await until(async () => {
            const { endedAt, status } = await built.run(id);
            return endedAt !== null || status === "STUCK";
          });
          return built.run(id);
        },
      };
    },
    records: (run) => store.read.journal(tenant, { run }),
    notes: (run) => store.read.journal(tenant, { run }, { inbox: true }),
    kinds: async (run) => (await store.read.journal(tenant, { run })).map(({ kind }) => kind),
    async run(id) {
      const found = await store.read.run(tenant, id);
      expect(found).toBeDefined();
      return found!;
    },
  };
  return built;
}

/** A store for one process; its calls never return once the process has crashed. */
function killable(store: Store): { readonly store: Store; kill(keeper: LeaseKeeper): void } {
  let dead = false;
  const group = <G extends object>(calls: G): G =>
    new Proxy(calls, {
      get(target, key) {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== "function") return member;
        return (...args: unknown[]): unknown => {
          if (dead) return new Promise(() => {});
          const result: unknown = Reflect.apply(member, target, args);
          return Promise.resolve(result).then(
            (value) => (dead ? new Promise(() => {}) : value),
            (error: unknown) => (dead ? new Promise(() => {}) : Promise.reject(error)),
          );
        };
      },
    });
  const { backend, limits, transactionBoundMs, exclusive } = store;
  const unsubscribe: (() => void)[] = [];
  return {
    store: {
      backend,
      limits,
      transactionBoundMs,
      exclusive,
      intake: group(store.intake),
      claim: group(store.claim),
      fenced: group(store.fenced),
      read: group(store.read),
      ...(store.within && {
        within: {
          ...group(store.within),
          step: (source, body) => group(store.within!.step(source, body)),
        },
      }),
      once: (key) => group(store.once(key)),
      health: () => store.health(),
      onWake: (listener) => {
        const stop = store.onWake((wake) => {
          if (!dead) listener(wake);
        });
        unsubscribe.push(stop);
        return stop;
      },
      close: async () => {},
    },
    kill(keeper) {
      dead = true;
      for (const stop of unsubscribe) stop();
      keeper.close();
    },
  };
}

/** A store that calls back before each append, with the kinds of its records and a count. */
export function watched(store: Store, onAppend: (kinds: readonly string[], n: number) => void | Promise<void>): Store {
  let n = 0;
  return {
    ...store,
    intake: store.intake,
    claim: store.claim,
    read: store.read,
    fenced: {
      ...store.fenced,
      async append(fence, entry) {
        await onAppend(
          entry.records.map(({ kind }) => kind),
          ++n,
        );
        return store.fenced.append(fence, entry);
      },
      appendAll: (batch) => store.fenced.appendAll(batch),
    },
    onWake: (listener) => store.onWake(listener),
    close: () => store.close(),
  };
}

/** What replay must reproduce: results by position, in journal order, without terms, tokens and times. */
export function essence(records: readonly JournalRecord[]): unknown[] {
  const skipped = new Set([
    "term.started",
    "term.ended",
    "notes.taken",
    "run.suspected",
    "run.created",
    "replay.stalled",
  ]);
  return records
    .filter(({ kind }) => !skipped.has(kind))
    .map(({ kind, data }) => ({ kind, ...(data as object), term: undefined, notesTaken: undefined }));
}
