import { type ChildProcess, fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../src/base/random.ts";
import { createRunner, Tape } from "../src/exports/index.ts";
import { startPostgres } from "../test/postgres/server.ts";
import { counter } from "./objects-process.ts";
import type { BenchOptions } from "./run.ts";
import { say } from "./work.ts";

/** Processes that increment one key of one object, while one of them after the other is killed and restarted. */
export async function benchObjects(options: BenchOptions): Promise<object> {
  const size = { processes: 8, calls: 250, kills: 40, ttlMs: 1_500 };
  const figures: Record<string, object> = {};
  if (options.only !== "postgres") {
    const folder = await mkdtemp(join(tmpdir(), "tape-objects-"));
    figures.sqlite = await countUnderKills(`sqlite:${join(folder, "tape.db")}`, size);
    await rm(folder, { recursive: true, force: true });
  }
  if (options.only !== "sqlite") {
    const server = await startPostgres({ major: 18, settings: {} });
    // A TTL must be longer than the bound of a transaction.
    figures.postgres = await countUnderKills(`${server.url}?transaction_bound_ms=1000`, size);
    await server.stop();
  }
  return figures;
}

export interface CountSize {
  readonly processes: number;
  /** Increments of each process. */
  readonly calls: number;
  readonly kills: number;
  readonly ttlMs: number;
}

export interface Count {
  readonly calls: number;
  /** The state after all calls: equal to `calls`, or an increment was lost or counted twice. */
  readonly state: number;
  readonly kills: number;
  readonly seconds: number;
}

export async function countUnderKills(url: string, size: CountSize): Promise<Count> {
  const { processes, calls, kills, ttlMs } = size;
  const random = seededRandom(`objects ${processes} ${calls}`);
  const total = processes * calls;
  const startedAt = performance.now();
  let killed = 0;
  let replies = 0;
  const live = new Map<string, ChildProcess>();
  // Kills are spread over the replies, so that they hit calls and not the start of processes.
  const killSome = (): void => {
    replies++;
    if (killed >= kills || replies < ((killed + 1) * total) / (kills + 2)) return;
    killed++;
    const names = [...live.keys()];
    live.get(names[random.int(names.length)]!)?.kill("SIGKILL");
    if (killed % 10 === 0) say(`${killed} kills, ${replies} replies`);
  };
  const increment = async (name: string): Promise<void> => {
    for (let code: number | null = null; code !== 0; ) {
      const child = fork(
        fileURLToPath(new URL("objects-process.ts", import.meta.url)),
        [url, name, `${calls}`, `${ttlMs}`],
        {
          execArgv: [],
          stdio: ["ignore", "inherit", "inherit", "ipc"],
        },
      );
      live.set(name, child);
      child.on("message", killSome);
      code = await new Promise((resolve) => child.once("exit", resolve));
      live.delete(name);
      if (code !== null && code !== 0) throw new Error(`process ${name} ended with code ${code}`);
    }
  };
  // The queue exists before the first process starts a run in it.
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [], objects: [counter] }), work: false });
  try {
    await Promise.all(Array.from({ length: processes }, (_, k) => increment(`p${k}`)));
    const state = await app.object(counter, "hits").state();
    return { calls: total, state, kills: killed, seconds: Math.round((performance.now() - startedAt) / 100) / 10 };
  } finally {
    await app.close();
  }
}
