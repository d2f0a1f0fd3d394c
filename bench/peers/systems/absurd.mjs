import { Absurd } from "absurd-sdk";
import pg from "pg";
import { payload, payment } from "../system.ts";

const queue = "bench";

/**
 * Absurd: one worker with as many tasks at a time as are asked for, which polls every 10 ms when it finds nothing (its
 * default is 250 ms), on a pool of twenty connections (ten by default). A task counts as finished when its last line has
 * run: asking for its result would poll.
 *
 * @type {import("../system.ts").Open}
 */
export const open = async ({ url, ttlSeconds, recovers }, world) => {
  const pool = new pg.Pool({ connectionString: url, max: 20 });
  const app = new Absurd({ db: pool, queueName: queue });
  if (!recovers) await app.createQueue(queue);
  const waiting = new Map();
  const task = (name, body) =>
    app.registerTask({ name }, async (params, ctx) => {
      const result = await body(params, ctx);
      waiting.get(params.key)?.(result);
      waiting.delete(params.key);
    });
  task("ten", async (_params, ctx) => {
    const started = performance.now();
    for (let k = 0; k < 10; k++) await ctx.step(`step-${k}`, async () => ({ ok: true, value: payload, at: k }));
    return { started };
  });
  task("one", (_params, ctx) => ctx.step("only", async () => ({ ok: true, value: payload })));
  task("nap", async ({ due }, ctx) => {
    await ctx.sleepUntil("nap", new Date(due));
    return Date.now();
  });
  task("pay", async ({ run }, ctx) => {
    for (const { step, ms } of payment) await ctx.step(step, () => world.call(run, step, ms));
  });
  let count = 0;
  const run = async (name, params) => {
    const key = ++count;
    const { promise, resolve } = Promise.withResolvers();
    waiting.set(key, resolve);
    await app.spawn(name, { ...params, key });
    return promise;
  };
  let worker;
  const concurrency = async (runs) => {
    await worker?.close();
    worker = await app.startWorker({ concurrency: runs, claimTimeout: ttlSeconds, pollInterval: 0.01 });
  };
  return {
    pulls: true,
    concurrency,
    ten: () => run("ten", {}),
    one: () => run("one", {}),
    nap: (due) => run("nap", { due }),
    pay: (id) => app.spawn("pay", { run: id, key: id }, { idempotencyKey: id, maxAttempts: 10 }),
    async close() {
      await worker?.close();
      await pool.end();
    },
  };
};
