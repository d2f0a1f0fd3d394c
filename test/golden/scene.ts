import type { DatabaseSync } from "node:sqlite";
import { type Entry, memoryLedger } from "../../examples/ledger.ts";
import { encode } from "../../src/base/codec.ts";
import { seededRandom } from "../../src/base/random.ts";
import { Tape } from "../../src/host/tape.ts";
import type { RunView, Store } from "../../src/store/contract/store.ts";
import { type Boundary, type CrashPoint, TestProcess } from "../../testkit/kit/process.ts";
import { type BodyCall, runnerIn } from "../../testkit/kit/runner.ts";
import { isSettled } from "../../testkit/kit/settle.ts";
import type { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { countedRunner } from "./counted.ts";
import { type Program, runId, type Surroundings } from "./program.ts";

/** The end of all runs of a tenant, and what it took to get there. */
export interface End {
  readonly runs: readonly { readonly id: string; readonly status: string; readonly outcome: string }[];
  readonly world: readonly Entry[];
  /** The bodies that this process called, sorted: branches may take turns in another order. */
  readonly called: readonly string[];
  readonly replies: Readonly<Record<string, unknown>>;
}

export interface SceneOptions {
  readonly time: VirtualTime;
  readonly store: Store;
  /** The database of the store, for transactional steps. */
  readonly database?: DatabaseSync | undefined;
  readonly program: Program;
  readonly tenant: string;
}

export interface Round {
  /** The process crashes before its append with this number. */
  readonly crashAt?: number;
  /** false: nothing answers the run. */
  readonly client?: boolean;
  /** After the snapshot: what the world has seen before it. */
  readonly continues?: { readonly world: readonly Entry[] };
}

export interface RoundEnd extends End {
  readonly appends: number;
}

const boundMs = 3_600_000;
const leaseTtlMs = 10_000;

/** Runs a program on one tenant of a store, from its start or from where another process has left it. */
export async function runProgram(
  { time, store, database, program, tenant }: SceneOptions,
  round: Round,
): Promise<RoundEnd> {
  const world = memoryLedger();
  for (const entry of round.continues?.world ?? []) world.add(entry);
  const { workflow, runner } = program.build(world, database);
  const later = round.continues !== undefined;
  const called: string[] = [];
  const calls: BodyCall[] = [];
  const replies: Record<string, unknown> = {};
  let appends = 0;
  const crashPointAt = ({ name, edge }: Boundary): CrashPoint => {
    if (edge !== "before" || (name !== "fenced.append" && name !== "within.commit")) return undefined;
    return ++appends === round.crashAt ? "crash" : undefined;
  };
  const process = new TestProcess({ name: later ? "second" : "first", clock: time, store, crashPointAt });
  const open = (one: Store, name: string, work: boolean): Promise<Tape> =>
    time.during(
      Tape.open({
        store: one,
        runner: work
          ? runnerIn(
              process,
              countedRunner(runner, (call) => called.push(call)),
              calls,
            )
          : runner,
        tenant,
        work,
        leaseTtl: leaseTtlMs,
        clock: work ? process.clock : time,
        random: seededRandom(`${tenant} ${name}`),
        report: false,
        log: "silent",
      }),
    );
  const worker = await open(process.store, process.name, true);
  const app = await open(store, `client of ${process.name}`, false);
  const done = new Set<string>();
  const around = (runs: readonly RunView[]): Surroundings => ({
    app,
    runs,
    world,
    start: (input) => app.start(workflow, input as never, program.start).then(({ id }) => id),
    later,
    once(name, request) {
      if (done.has(name)) return;
      done.add(name);
      request().then(
        (value) => {
          replies[name] = value ?? null;
        },
        (error: unknown) => {
          replies[name] = String((error as { code?: unknown }).code ?? error);
        },
      );
    },
  });
  if (!later) {
    const starting = worker.start(workflow, program.input as never, { ...program.start, id: runId });
    starting.catch(() => {});
    await Promise.race([time.during(starting), time.elapse(10)]);
  }
  const runs = await settle();
  if (process.state !== "crashed") await time.during(worker.close());
  await time.during(app.close());
  const ends = runs
    .map(({ id, status, outcome }) => ({ id, status, outcome: encode(outcome) }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  for (const { role, effect, key } of calls) called.push(`${role} ${effect} ${key}`);
  return { runs: ends, world: world.entries(), called: called.sort(), replies, appends };

  /** Lets time pass until the process has crashed, or every run has settled or waits for something that never comes. */
  async function settle(): Promise<RunView[]> {
    for (let until = time.now + boundMs, idlePolls = 0, wasIdle = false; ; ) {
      const before = done.size;
      const found = await time.during(store.read.runs(tenant));
      if (round.client !== false) await time.during(Promise.resolve(program.client?.(around(found))));
      if (done.size > before) idlePolls = 0;
      else if (idlePolls > 1 || process.state === "crashed") return found;
      if (time.now > until) throw new Error(`${tenant} does not settle: ${found.map(({ status }) => status).join()}`);
      const idleFor = found.every(isSettled) ? Number.POSITIVE_INFINITY : await time.during(idleMs());
      if (idleFor === Number.POSITIVE_INFINITY) idlePolls++;
      else if (idleFor > 1_000 && round.client === false) return found;
      else if (idleFor > 1_000 && wasIdle) {
        time.jump(idleFor - 1);
        until += idleFor;
      }
      wasIdle = idleFor > 1_000 && !wasIdle; // a gate may have opened since the last poll: poll once more, then jump
      await time.elapse(100);
    }
  }

  async function idleMs(): Promise<number> {
    const leases = await store.read.leases(tenant);
    if (leases.some(({ owner, nextReactor }) => owner !== null || nextReactor !== null)) return 0;
    const due = (await store.read.agenda(tenant)).map(({ dueInMs }) => dueInMs);
    return Math.min(Number.POSITIVE_INFINITY, ...due);
  }
}
