import { fileURLToPath } from "node:url";
import { boundOf } from "../../../src/alarm/alarms.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { Tape } from "../../../src/host/tape.ts";
import { type Death, deaths } from "../../../test/processes/dying.ts";
import { foundOf } from "../../../test/processes/serverless-world.ts";
import { serveTasks } from "../../../test/processes/tasks-server.ts";
import { FakeCloudTasks, type TaskCall } from "../../../testkit/kit/fake-cloud-tasks.ts";
import type { Fault, Injection } from "../fault.ts";
import { processFaults } from "../faults/processes.ts";
import type { Rule } from "../judge.ts";
import type { Place } from "../places.ts";
import type { Replica } from "../replicas.ts";
import { type RoundReport, runRound, type Variant } from "../round.ts";
import { persistently } from "../store-calls.ts";
import { servicesAt } from "./services.ts";
import { Writers, writerKind } from "./writers.ts";

export interface PushRoundOptions {
  readonly name: string;
  readonly place: Place;
  readonly ttlMs: number;
  readonly ms: number;
  readonly seed: string;
  readonly folder: string;
  readonly handlers?: number;
  readonly maxLive?: number;
  /** Default: all. */
  readonly flows?: readonly string[];
  /** Where the last writers die. Default: everywhere. With `lastOnly` no other writer dies. */
  readonly last?: readonly Death[];
  readonly lastOnly?: boolean;
  /** Selects faults. Default: all. */
  readonly select?: (faults: readonly Fault[]) => Fault[];
  readonly progress?: (line: string) => void;
}

export const alarmKind = "alarm service refuses, or loses its answers";
/** The shortest that Cloud Tasks offers. */
const deadlineMs = 15_000;
const maxBackoffMs = 1_000;

/** Our FAKE of Cloud Tasks, which can fail, and the handlers that it calls. */
class AlarmService {
  readonly tasks: FakeCloudTasks;
  handlers: readonly Replica[] = [];
  fault: "refuse" | "lost" | undefined;
  /** Requests that met the fault. */
  faults = 0;
  #calls = 0;

  constructor() {
    const fault = (): "refuse" | "lost" | undefined => {
      if (this.fault !== undefined) this.faults++;
      return this.fault;
    };
    const dispatch = (call: TaskCall): Promise<number> => this.#dispatch(call);
    this.tasks = new FakeCloudTasks({ clock: systemClock, dispatch, maxBackoffMs, fault });
  }

  /** One handler after the other, also those that are dead or stopped: the service cannot know. */
  async #dispatch({ url, headers, body }: TaskCall): Promise<number> {
    const handler = this.handlers[this.#calls++ % this.handlers.length];
    if (handler?.url === undefined) throw new Error("no handler has started");
    const signal = AbortSignal.timeout(deadlineMs);
    const response = await fetch(handler.url + new URL(url).pathname, { method: "POST", headers, body, signal });
    await response.arrayBuffer();
    return response.status;
  }
}

/** Handlers that run only while they are called, and a service that calls them: our FAKE of Cloud Tasks. */
export async function runPushRound(options: PushRoundOptions): Promise<RoundReport> {
  const { place, ttlMs, ms, seed, folder, name } = options;
  const random = seededRandom(`${seed} push`);
  const service = new AlarmService();
  const { tasks } = service;
  const server = await serveTasks(tasks);
  let injections: Injection[] = [];
  let writers: Writers | undefined;
  let foundMaxMs = 0;
  const variant: Variant = {
    program: { file: fileURLToPath(new URL("handler.ts", import.meta.url)), name: "handler" },
    orders: { tasks: server.url },
    deployed: (replicas) => {
      service.handlers = replicas;
    },
    async loader({ world, flows, runner }) {
      const url = place.urlFor(0);
      const serverless = servicesAt(server.url);
      const client = await persistently(() =>
        Tape.open({ store: url, runner, work: false, serverless, log: "silent" }),
      );
      writers = new Writers({
        ...{ orders: { url, world, tasks: server.url }, folder, client, random },
        flows: options.flows ?? Object.keys(flows),
        maxLive: options.maxLive ?? 20,
        injections: () => injections,
        alarmsNear: () => tasks.pending.filter(({ at }) => at < systemClock.wall() + 60_000).length,
        mortal: options.lastOnly !== true,
        last: options.last ?? deaths,
      });
      return writers;
    },
    async judge({ store, tenant }, runs): Promise<Rule[]> {
      // An alarm fires four bounds after the commit at the latest; its first call may hit a handler that is stopped.
      const boundMs = 4 * boundOf(store.transactionBoundMs) + deadlineMs + ttlMs + maxBackoffMs;
      const found = await Promise.all(runs.map((run) => persistently(() => foundOf(store, tenant, run))));
      foundMaxMs = Math.max(0, ...found.map((one) => one.foundMs));
      const broken = found
        .filter((one) => one.foundMs > boundMs)
        .map((one) => `run ${one.run} was found ${one.foundMs} ms after its commit, the bound is ${boundMs} ms`);
      return [{ rule: "no run was forgotten beyond the bound of its alarm", checked: found.length, broken }];
    },
    lines: () => [
      `writers killed: ${JSON.stringify(writers?.killed)}; runs were found within ${Math.round(foundMaxMs)} ms of their commit`,
      `alarm service (a fake of Cloud Tasks): ${tasks.created} tasks, ${tasks.calls} calls, ${tasks.conflicts} conflicts, ${service.faults} requests refused or unanswered`,
    ],
  };
  try {
    return await runRound({
      ...{ name, place, ttlMs, ms, seed, folder, variant, replicas: options.handlers ?? 3 },
      ...(options.progress && { progress: options.progress }),
      faults: (deployment) => {
        injections = deployment.injections;
        const all = [...processFaults(deployment), alarmFault(service, injections, random), writerFault(injections)];
        return options.select?.(all) ?? all;
      },
    });
  } finally {
    server.close();
  }
}

/** The alarm service fails for a while: what cannot be armed is not written. */
function alarmFault(service: AlarmService, injections: Injection[], random: { int(below: number): number }): Fault {
  return {
    kind: alarmKind,
    effectiveWhen: "it refused a task, or stored one whose answer was lost",
    weight: 1,
    async inject() {
      const before = service.faults;
      const how = random.int(2) === 0 ? "refuse" : "lost";
      service.fault = how;
      await systemClock.sleep(500 + random.int(1_500));
      service.fault = undefined;
      const effective = service.faults > before;
      const hit = [effective ? `requests that it ${how === "refuse" ? "refused" : "carried out"}` : "no request"];
      injections.push({ kind: alarmKind, effective, hit, outcome: ["healthy again"] });
    },
  };
}

/** Writers die on their own, with every few starts: this kind only waits for the next one. */
function writerFault(injections: readonly Injection[]): Fault {
  const count = (): number => injections.filter(({ kind }) => kind === writerKind).length;
  return {
    kind: writerKind,
    effectiveWhen: "the writer was alone with its start: no other process repeats it",
    weight: 1,
    async inject() {
      const before = count();
      for (let k = 0; k < 40 && count() === before; k++) await systemClock.sleep(50);
    },
  };
}
