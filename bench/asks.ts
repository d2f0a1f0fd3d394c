import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createRunner, gate, Tape, workflow } from "../src/exports/index.ts";
import { startPostgres } from "../test/postgres/server.ts";
import type { BenchOptions } from "./run.ts";
import { percentile, say } from "./work.ts";

const add = gate<number, number>("add", { reply: true });
/** A few requests per run: a parked run is replayed when it resumes, and that should stay short. */
const each = 20;
const sum = workflow("sum", async (tape) => {
  let total = 0;
  for (let k = 0; k < each; k++) {
    const request = await tape.gate(add);
    if (request.status !== "received") break;
    total += request.value;
    request.reply(total);
  }
  return total;
});

/**
 * Requests to a parked run, one after the other: how long each takes from `app.ask` to its reply. In between the run
 * parks, so that every request wakes it, claims it, replays it and parks it again.
 *
 *   p50, p99   of the requests, in milliseconds
 *   write      p50 of a bare write of a value to the same store
 *   ratio      p50 ÷ write
 */
export async function benchAsks({ flags }: BenchOptions): Promise<object> {
  const { values } = parseArgs({
    args: [...flags],
    options: {
      asks: { type: "string", default: "400" },
      only: { type: "string" },
      json: { type: "boolean" },
      seconds: { type: "string" },
    },
  });
  const count = Number(values.asks);
  const figures: Record<string, object> = {};
  if (values.only !== "postgres") {
    const folder = await mkdtemp(join(tmpdir(), "tape-asks-"));
    figures.sqlite = await measure("sqlite", `sqlite:${join(folder, "asks.db")}`, count);
    await rm(folder, { recursive: true, force: true });
  }
  if (values.only !== "sqlite") {
    const server = await startPostgres({ major: 18, settings: {} });
    try {
      figures.postgres = await measure("postgres", server.url, count);
    } finally {
      await server.stop();
    }
  }
  return figures;
}

async function measure(name: string, store: string, count: number): Promise<object> {
  await using app = await Tape.open({ store, runner: createRunner({ workflows: [sum] }) });
  await requests(app, each); // warm-up
  const asks = await requests(app, count);
  const writes: number[] = [];
  for (let k = 0; k < count; k++) {
    const from = performance.now();
    await app.store.intake.putValue(app.tenant, "probe", k, "unconditional");
    writes.push(performance.now() - from);
  }
  const [p50, write] = [percentile(asks, 0.5), percentile(writes, 0.5)];
  const figures = {
    ...{ asks: asks.length, p50: ms(p50), p99: ms(percentile(asks, 0.99)), worst: ms(Math.max(...asks)) },
    ...{ write: ms(write), ratio: ms(p50 / write) },
  };
  say(`${name}: ${JSON.stringify(figures)}`);
  return figures;
}

async function requests(app: Tape, count: number): Promise<number[]> {
  const taken: number[] = [];
  while (taken.length < count) {
    const run = await app.start(sum, null);
    for (let k = 0; k < each; k++) {
      while ((await run.status()) !== "WAITING") await new Promise((resolve) => setTimeout(resolve, 2));
      const from = performance.now();
      await app.ask(run.id, add, 1);
      taken.push(performance.now() - from);
    }
    await run.result();
  }
  return taken;
}

const ms = (value: number): number => Math.round(value * 10) / 10;
