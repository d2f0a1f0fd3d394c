import type { Queue, Storage, Streamer, World } from "@workflow/world";
import { systemClock } from "../base/clock.ts";
import { systemRandom } from "../base/random.ts";
import { appLog } from "../host/options.ts";
import { Tape } from "../host/tape.ts";
import { createRunner } from "../sdk/workflow.ts";
import { messageWorkflow, postTo } from "./delivery.ts";
import { secretOf } from "./envelope.ts";
import { WorldEvents } from "./events.ts";
import { HookTokens } from "./hook-tokens.ts";
import { WorldHooks } from "./hooks.ts";
import { WorldKeys } from "./keys.ts";
import { baseUrlOf, type WorldOptions, worldOptions } from "./options.ts";
import { enqueue, queueHandler } from "./queue.ts";
import { RunLogs, specVersion } from "./run-log.ts";
import { RunSummaries, WorldRuns } from "./runs.ts";
import { WorldStreams } from "./streams.ts";

/** Deliveries last as long as the steps in them; only longer ones are worth a line in the log. */
const slowAfter = "1h";

/**
 * A World of Vercel Workflow on a store of Tape: its runs, events, hooks and streams are values, its messages are runs.
 * Nothing is opened before the first call; messages are delivered from `start` on.
 *
 * @example
 * setWorld(createWorld({ store: "postgres://127.0.0.1/app" }));
 */
export function createWorld(given: WorldOptions = {}): World & Required<Pick<World, "start" | "close">> {
  const options = worldOptions(given, process.env);
  const { clock = systemClock, random = systemRandom } = options;
  const log = appLog(options.log);
  const opened = once(() => openParts(options));
  const secret = once(async () => secretOf((await opened()).deps));
  const deliver = postTo({ clock, secret, baseUrl: () => baseUrlOf(options, process.env) });
  const messages = messageWorkflow(options.prefix, deliver);
  const working = once(async () => {
    const { concurrency } = options;
    const { app } = await opened();
    return app.worker(createRunner({ workflows: [messages] }), concurrency === undefined ? {} : { concurrency });
  });
  let closing: Promise<void> | undefined;

  const queue: Queue = {
    getDeploymentId: async () => process.env.WORKFLOW_TAPE_DEPLOYMENT_ID ?? "dpl_tape",
    queue: async (...call) => enqueue((await opened()).app, messages, { clock, random }, call),
    createQueueHandler: (prefix, handle) => queueHandler(prefix, handle, { secret, log }),
  };
  return {
    specVersion,
    ...queue,
    ...storageOf(opened),
    ...streamerOf(opened),
    async start() {
      await working();
    },
    close() {
      closing ??= opened.started()?.then(({ app }) => app.close()) ?? Promise.resolve();
      return closing;
    },
  };
}

interface Parts {
  readonly app: Tape;
  readonly deps: ConstructorParameters<typeof RunLogs>[0];
  readonly events: WorldEvents;
  readonly runs: WorldRuns;
  readonly hooks: WorldHooks;
  readonly streams: WorldStreams;
}

async function openParts({
  prefix,
  concurrency: _,
  baseUrl: _url,
  ...open
}: ReturnType<typeof worldOptions>): Promise<Parts> {
  const app = await Tape.open({ ...open, runner: createRunner({ workflows: [] }), work: false, slowAfter });
  const { clock = systemClock, random = systemRandom } = open;
  const deps = { store: app.store, tenant: app.tenant, clock, random, keys: new WorldKeys(prefix) };
  const logs = new RunLogs(deps);
  const tokens = new HookTokens(deps, logs);
  const summaries = new RunSummaries(deps);
  return {
    ...{ app, deps },
    events: new WorldEvents(deps, logs, tokens, summaries),
    runs: new WorldRuns(logs, summaries),
    hooks: new WorldHooks(deps, logs, tokens),
    streams: new WorldStreams(deps),
  };
}

function storageOf(parts: () => Promise<Parts>): Storage {
  const runs = {
    get: async (...call: Parameters<WorldRuns["get"]>) => (await parts()).runs.get(...call),
    list: async (...call: Parameters<WorldRuns["list"]>) => (await parts()).runs.list(...call),
  };
  const steps = {
    get: async (...call: Parameters<WorldRuns["getStep"]>) => (await parts()).runs.getStep(...call),
    list: async (...call: Parameters<WorldRuns["listSteps"]>) => (await parts()).runs.listSteps(...call),
  };
  const events: Storage["events"] = {
    create: async (...call: Parameters<WorldEvents["create"]>) => (await parts()).events.create(...call),
    get: async (...call) => (await parts()).events.get(...call),
    list: async (...call) => (await parts()).events.list(...call),
    listByCorrelationId: async (...call) => (await parts()).events.listByCorrelationId(...call),
  };
  const hooks: Storage["hooks"] = {
    get: async (...call) => (await parts()).hooks.get(...call),
    getByToken: async (...call) => (await parts()).hooks.getByToken(...call),
    list: async (...call) => (await parts()).hooks.list(...call),
  };
  // The types of `get` and `list` depend on `resolveData`, which no implementation can follow.
  return { runs: runs as Storage["runs"], steps: steps as Storage["steps"], events, hooks };
}

function streamerOf(parts: () => Promise<Parts>): Streamer {
  return {
    streams: {
      write: async (...call) => (await parts()).streams.write(...call),
      writeMulti: async (...call) => (await parts()).streams.writeMulti(...call),
      close: async (...call) => (await parts()).streams.close(...call),
      get: async (...call) => (await parts()).streams.get(...call),
      list: async (...call) => (await parts()).streams.list(...call),
      getChunks: async (...call) => (await parts()).streams.getChunks(...call),
      getInfo: async (...call) => (await parts()).streams.getInfo(...call),
    },
  };
}

/** Calls once; again if that has failed. `started` is the call under way, or what came of it. */
function once<T>(call: () => Promise<T>): (() => Promise<T>) & { started(): Promise<T> | undefined } {
  let started: Promise<T> | undefined;
  const get = (): Promise<T> => {
    started ??= call().catch((error: unknown) => {
      started = undefined;
      throw error;
    });
    return started;
  };
  return Object.assign(get, { started: () => started });
}
