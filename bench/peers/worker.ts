// One system in its own process: executes requests over IPC and responds with figures.
import { median, percentile } from "../work.ts";
import type { Open, System, WorkerSettings } from "./system.ts";
import { World } from "./world.ts";

export type Ask =
  | { readonly ask: "steps"; readonly runs: number; readonly ms: number; readonly warmMs: number }
  | { readonly ask: "short"; readonly runs: number }
  | { readonly ask: "timers"; readonly runs: number; readonly inMs: number; readonly moments: number }
  | { readonly ask: "pay"; readonly ids: readonly string[] }
  | { readonly ask: "serve"; readonly runs: number }
  | { readonly ask: "idle"; readonly ms: number }
  | { readonly ask: "close" };

export interface Answer {
  readonly figures?: Readonly<Record<string, number>>;
  readonly error?: string;
}

type Figures = Record<string, number>;

async function steps(system: System, runs: number, ms: number, warmMs: number): Promise<Figures> {
  await system.concurrency(runs);
  const writers = system.pulls ? 2 * runs : runs;
  const warmUntil = performance.now() + warmMs;
  const warm = async (): Promise<void> => {
    do await system.ten();
    while (performance.now() < warmUntil);
  };
  await Promise.all(Array.from({ length: writers }, warm));
  const latencies: number[] = [];
  const cpu = process.cpuUsage();
  const started = performance.now();
  await Promise.all(
    Array.from({ length: writers }, async () => {
      while (performance.now() < started + ms) {
        const started = performance.now();
        const { started: first = started } = await system.ten();
        latencies.push(performance.now() - first);
      }
    }),
  );
  const tookMs = performance.now() - started;
  const { user, system: kernel } = process.cpuUsage(cpu);
  return {
    stepsPerSecond: (latencies.length * 10 * 1000) / tookMs,
    p50Ms: median(latencies),
    p99Ms: percentile(latencies, 0.99),
    workerCpuMsPerStep: (user + kernel) / 1000 / (latencies.length * 10),
  };
}

/** All at once: started and finished. */
async function short(system: System, runs: number): Promise<Figures> {
  await system.concurrency(128);
  const started = performance.now();
  let left = runs;
  await Promise.all(
    Array.from({ length: 256 }, async () => {
      while (left-- > 0) await system.one();
    }),
  );
  return { runsPerSecond: (runs * 1000) / (performance.now() - started) };
}

/**
 * Timers at several moments, with all lags together: the lag of a system that polls depends on when its poll happens, so
 * the moments differ in their place within the second.
 */
async function timers(system: System, runs: number, inMs: number, moments: number): Promise<Figures> {
  await system.concurrency(1_000);
  const lags: number[] = [];
  for (let k = 0; k < moments; k++) {
    const due = Math.ceil((Date.now() + inMs) / 1_000) * 1_000 + Math.round((k * 1_000) / moments);
    const woken = await Promise.all(Array.from({ length: runs }, () => system.nap(due)));
    lags.push(...woken.map((at) => at - due));
  }
  return { p50Ms: median(lags), p99Ms: percentile(lags, 0.99), earliestMs: Math.min(...lags) };
}

async function idle(system: System, ms: number): Promise<Figures> {
  await system.concurrency(128);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const cpu = process.cpuUsage();
  await new Promise((resolve) => setTimeout(resolve, ms));
  const { user, system: kernel } = process.cpuUsage(cpu);
  return { cpuPercent: (user + kernel) / 10 / ms, rssMb: process.memoryUsage.rss() / 1e6 };
}

async function answer(system: System, message: Ask): Promise<Figures> {
  switch (message.ask) {
    case "steps":
      return steps(system, message.runs, message.ms, message.warmMs);
    case "short":
      return short(system, message.runs);
    case "timers":
      return timers(system, message.runs, message.inMs, message.moments);
    case "idle":
      return idle(system, message.ms);
    case "pay":
      await Promise.all(message.ids.map((id) => system.pay(id)));
      return {};
    case "serve":
      await system.concurrency(message.runs);
      return {};
    case "close":
      await system.close();
      return {};
  }
}

const settings = JSON.parse(process.argv[2] ?? "{}") as WorkerSettings;
const file = settings.system.startsWith("tape-") ? "tape.ts" : `${settings.system}.mjs`;
const { open } = (await import(`./systems/${file}`)) as { open: Open };
const system = await open(settings, new World(settings.world));
const say = (message: Answer): void => void process.send?.(message);
process.on("message", (message: Ask) => {
  answer(system, message)
    .then((figures) => say({ figures }))
    .catch((error: unknown) => say({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }))
    .finally(() => message.ask === "close" && process.exit(0));
});
process.once("disconnect", () => process.exit(0));
say({ figures: {} });
