// One process of the queue benchmark: opens one queue of one system, executes requests over IPC, responds with figures.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { percentile } from "../../work.ts";
import { payload } from "../system.ts";
import type { Answer } from "../worker.ts";
import { fileOf, type Job, type OpenQueue, type QueueSettings, sharedNow } from "./system.ts";

/** `count` jobs; their key is `key`, followed by a number where there are several `keys`. */
export interface Jobs {
  readonly count: number;
  readonly key?: string;
  readonly keys?: number;
  readonly holdMs?: number;
}

export type QueueAsk =
  /** In one go; with `callers`: one call for each job, that many at a time. */
  | { readonly ask: "enqueue"; readonly jobs: readonly Jobs[]; readonly callers?: number }
  | { readonly ask: "serve" }
  /** Serves until that number of jobs is done, without those of one key; `settled`: until none is left. */
  | {
      readonly ask: "drain";
      readonly jobs: number;
      readonly except?: string;
      readonly settled?: boolean;
      readonly maxMs?: number;
    }
  | { readonly ask: "begins"; readonly ms: number }
  /** One job after the other, with a pause, and the time of its start in it. */
  | { readonly ask: "trickle"; readonly jobs: number; readonly everyMs: number }
  /** Waits for them; those before `after` do not count. */
  | { readonly ask: "lags"; readonly jobs: number; readonly after?: number }
  | { readonly ask: "left" }
  | { readonly ask: "close" };

type Figures = Record<string, number>;
/** Longer than any answer is waited for. */
const forever = 3_600_000;

const settings = JSON.parse(process.argv[2] ?? "{}") as QueueSettings;
const lags: number[] = [];
const doneOf = new Map<string, number>();
let [starts, done, firstAt] = [0, 0, 0];
let changed = (): void => {};

const note = (what: string, { id }: Job): void => {
  if (settings.ledger !== undefined) appendFileSync(settings.ledger, `${what} ${id} ${process.pid}\n`);
};

async function body(job: Job): Promise<unknown> {
  if (job.at !== undefined) lags.push(sharedNow() - job.at);
  note("enter", job);
  if (starts++ === 0) firstAt = performance.now();
  if (job.holdMs !== undefined) await sleep(job.holdMs);
  note("leave", job);
  done++;
  doneOf.set(job.key ?? "", (doneOf.get(job.key ?? "") ?? 0) + 1);
  changed();
  return { ok: true, value: payload };
}

/** Until the condition holds, which is checked whenever a job is done, or `maxMs` have passed; whether it holds. */
function until(reached: () => boolean, maxMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      changed = () => {};
      resolve(reached());
    };
    const timer = setTimeout(end, maxMs);
    changed = () => reached() && end();
    changed();
  });
}

let created = 0;
function* expand(all: readonly Jobs[]): Generator<Job> {
  for (const { count, key, keys, holdMs } of all)
    for (let k = 0; k < count; k++)
      yield {
        id: `job-${process.pid}-${++created}`,
        ...(key !== undefined && { key: keys === undefined ? key : `${key}${k % keys}` }),
        ...(holdMs !== undefined && { holdMs }),
      };
}

const { open } = (await import(`./${fileOf(settings.system)}`)) as { open: OpenQueue };
const queue = await open(settings, body);

const answers: { readonly [K in QueueAsk["ask"]]: (ask: Extract<QueueAsk, { ask: K }>) => Promise<Figures> } = {
  async enqueue({ jobs, callers }) {
    const all = [...expand(jobs)];
    const started = performance.now();
    if (callers === undefined) await queue.enqueue(all);
    else {
      const one = async (): Promise<void> => {
        for (let job = next(); job !== undefined; job = next()) await queue.enqueue([job]);
      };
      let k = 0;
      const next = (): Job | undefined => all[k++];
      await Promise.all(Array.from({ length: callers }, one));
    }
    const ms = performance.now() - started;
    return { ms, jobsPerSecond: (all.length * 1000) / ms };
  },
  async serve() {
    await queue.serve();
    return {};
  },
  async drain({ jobs, except, settled = false, maxMs = forever }) {
    await queue.serve();
    const counted = (): number => done - (except === undefined ? 0 : (doneOf.get(except) ?? 0));
    const finished = await until(() => counted() >= jobs, maxMs);
    while (finished && settled && (await queue.left()) > 0) await sleep(5);
    const ms = performance.now() - firstAt;
    return { ms, jobsPerSecond: (Math.min(jobs, counted()) * 1000) / ms, done, finished: Number(finished) };
  },
  async begins({ ms }) {
    await queue.serve();
    await until(() => done > 0, forever);
    const [before, started] = [starts, performance.now()];
    await sleep(ms);
    return { beginsPerSecond: ((starts - before) * 1000) / (performance.now() - started) };
  },
  async trickle({ jobs, everyMs }) {
    for (let k = 0; k < jobs; k++) {
      await queue.enqueue([{ id: `job-${process.pid}-${++created}`, at: sharedNow() }]);
      await sleep(everyMs);
    }
    return {};
  },
  async lags({ jobs, after = 0 }) {
    await until(() => done >= after + jobs, forever);
    const counted = lags.slice(after);
    return { p50Ms: percentile(counted, 0.5), p99Ms: percentile(counted, 0.99), maxMs: Math.max(...counted) };
  },
  async left() {
    return { left: await queue.left() };
  },
  async close() {
    await queue.close();
    return {};
  },
};

const respond = (message: Answer): void => void process.send?.(message);
process.on("message", (message: QueueAsk) => {
  (answers[message.ask] as (ask: QueueAsk) => Promise<Figures>)(message)
    .then((figures) => respond({ figures }))
    .catch((error: unknown) => respond({ error: error instanceof Error ? (error.stack ?? "") : String(error) }))
    .finally(() => message.ask === "close" && process.exit(0));
});
process.once("disconnect", () => process.exit(0));
respond({ figures: {} });
