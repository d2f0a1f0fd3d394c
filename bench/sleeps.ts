import { closeSync, fdatasync, openSync, unlinkSync, write } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { createRunner, Tape, workflow } from "../src/exports/index.ts";
import { startPostgres } from "../test/postgres/server.ts";
import type { BenchOptions } from "./run.ts";
import { startServer } from "./served.ts";
import { percentile, say } from "./work.ts";

/**
 * Durable sleeps of 5 to 20 ms, one after the other in one run: how late each ends. Meanwhile three probes measure the
 * machine: a bare timer, a bare write with fdatasync on the same disk, and a bare timer between two writes of the same
 * store on the same route. A sleep counts as late because of Tape only if it is later than the worst probe meanwhile.
 *
 *   worst      of all lags
 *   late       lags above 100 ms
 *   ours       lags of more than 100 ms above what the probes saw meanwhile
 */
export async function benchSleeps({ flags }: BenchOptions): Promise<object> {
  const { values } = parseArgs({
    args: [...flags],
    options: {
      sleeps: { type: "string", default: "1000" },
      only: { type: "string" },
      remote: { type: "boolean", default: false },
      json: { type: "boolean" },
      seconds: { type: "string" },
    },
  });
  const count = Number(values.sleeps);
  const figures: Record<string, object> = {};
  if (values.only !== "postgres") {
    const folder = await mkdtemp(join(tmpdir(), "tape-sleeps-"));
    try {
      if (!values.remote) figures.sqlite = await embedded("sqlite", `sqlite:${join(folder, "near.db")}`, folder, count);
      figures.sqliteRemote = await remote("sqlite, remote", `sqlite:${join(folder, "far.db")}`, folder, count);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  if (values.only !== "sqlite") {
    const server = await startPostgres({ major: 18, settings: {} });
    const folder = await mkdtemp(join(tmpdir(), "tape-sleeps-"));
    try {
      if (!values.remote) figures.postgres = await embedded("postgres", server.url, folder, count);
      figures.postgresRemote = await remote("postgres, remote", `${server.url}?schema=far`, folder, count);
    } finally {
      await rm(folder, { recursive: true, force: true });
      await server.stop();
    }
  }
  return figures;
}

interface Nap {
  readonly from: number;
  readonly to: number;
  readonly lagMs: number;
}

const each = 20;
/** A few per run: a parked run is replayed when it resumes, and that should stay short. */
const naps = workflow("naps", async (tape, first: number) => {
  for (let k = first; k < first + each; k++) {
    const ms = 5 + (k % 16);
    const from = started.get(k) ?? performance.now();
    started.set(k, from);
    await tape.sleep(ms);
    const to = performance.now();
    if (!taken.has(k)) taken.set(k, { from, to, lagMs: to - from - ms }); // else it is replayed
  }
});
const started = new Map<number, number>();
const taken = new Map<number, Nap>();

async function embedded(name: string, store: string, folder: string, count: number): Promise<object> {
  const app = await Tape.open({ store, runner: createRunner({ workflows: [naps] }) });
  try {
    return await measure(name, app, folder, count);
  } finally {
    await app.close();
  }
}

async function remote(name: string, store: string, folder: string, count: number): Promise<object> {
  const server = await startServer(store);
  const app = await Tape.connect(server.url, { runner: createRunner({ workflows: [naps] }) });
  try {
    return await measure(name, app, folder, count);
  } finally {
    await app.close();
    await server.stop();
  }
}

async function measure(name: string, app: Tape, folder: string, count: number): Promise<object> {
  await (await app.start(naps, 0)).result(); // warm-up
  started.clear();
  taken.clear();
  const probes = [timerProbe(), diskProbe(folder), storeProbe(app)] as const;
  for (let done = 0; done < count; done += each) await (await app.start(naps, done)).result();
  const [timer, disk, store] = await Promise.all(probes.map((probe) => probe.stop()));
  const all = [...taken.values()];
  const lags = all.map(({ lagMs }) => lagMs);
  const noise = (nap: Nap): number => Math.max(...[timer!, disk!, store!].map((seen) => worstOf(seen, nap)));
  const late = all.filter(({ lagMs }) => lagMs > boundMs);
  const ours = all.filter((nap) => nap.lagMs > boundMs + noise(nap));
  const figures = {
    ...{
      sleeps: all.length,
      p50: ms(percentile(lags, 0.5)),
      p99: ms(percentile(lags, 0.99)),
      worst: ms(Math.max(...lags)),
    },
    ...{ late: late.length, ours: ours.length },
    timer: { p99: ms(percentile(delays(timer!), 0.99)), worst: ms(Math.max(...delays(timer!))) },
    disk: { p99: ms(percentile(delays(disk!), 0.99)), worst: ms(Math.max(...delays(disk!))) },
    store: {
      p50: ms(percentile(delays(store!), 0.5)),
      p99: ms(percentile(delays(store!), 0.99)),
      worst: ms(Math.max(...delays(store!))),
    },
    latest: late
      .toSorted((a, b) => b.lagMs - a.lagMs)
      .slice(0, 8)
      .map((nap) => ({
        lag: ms(nap.lagMs),
        timer: ms(worstOf(timer!, nap)),
        disk: ms(worstOf(disk!, nap)),
        store: ms(worstOf(store!, nap)),
      })),
  };
  say(`${name}: ${JSON.stringify(figures)}`);
  return figures;
}

const boundMs = 100;
const ms = (value: number): number => Math.round(value * 10) / 10;

interface Seen {
  readonly from: number;
  readonly to: number;
  /** By how much it took longer than it should have. */
  readonly delayMs: number;
}
interface Probe {
  stop(): Promise<readonly Seen[]>;
}
const delays = (seen: readonly Seen[]): number[] => seen.map(({ delayMs }) => delayMs);
const worstOf = (seen: readonly Seen[], nap: Nap): number =>
  seen.reduce((worst, one) => (one.to >= nap.from && one.from <= nap.to ? Math.max(worst, one.delayMs) : worst), 0);

function probing(once: () => Promise<void>, dueMs: number, end: () => void): Probe {
  const seen: Seen[] = [];
  let stopped = false;
  const over = (async () => {
    while (!stopped) {
      const from = performance.now();
      await once();
      const to = performance.now();
      seen.push({ from, to, delayMs: to - from - dueMs });
    }
    end();
  })();
  return {
    async stop() {
      stopped = true;
      await over;
      return seen;
    },
  };
}

/** How late this process is called, whatever it waits for. */
const timerProbe = (): Probe =>
  probing(
    () => new Promise((resolve) => setTimeout(resolve, 5)),
    5,
    () => {},
  );

/** How long a page takes to the disk. */
function diskProbe(folder: string): Probe {
  const file = join(folder, "probe");
  const fd = openSync(file, "w");
  const page = Buffer.alloc(4096);
  const [put, sync] = [promisify(write), promisify(fdatasync)];
  const once = async (): Promise<void> => {
    await put(fd, page, 0, page.length, 0);
    await sync(fd);
    await new Promise((resolve) => setTimeout(resolve, 5));
  };
  return probing(once, 5, () => {
    closeSync(fd);
    unlinkSync(file);
  });
}

/** A bare timer between two writes of the same store on the same way: what a sleep that is durable costs at least. */
function storeProbe({ store, tenant }: Tape): Probe {
  const put = () => store.intake.putValue(tenant, "probe", 1, "unconditional");
  const once = async (): Promise<void> => {
    await put();
    await new Promise((resolve) => setTimeout(resolve, 10));
    await put();
  };
  return probing(once, 10, () => {});
}
