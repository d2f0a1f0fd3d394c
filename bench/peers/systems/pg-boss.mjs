import { PgBoss } from "pg-boss";
import { payload, payment } from "../system.ts";

const queue = "bench";

/**
 * pg-boss has jobs, not steps: a run is a chain of jobs, each of which sends the next and hands its result on to it (the
 * others keep the result of a step too). One worker takes as many jobs in a batch as may be at work, sends their
 * successors in one insert, and is woken by LISTEN/NOTIFY. A dead worker is noticed by the heartbeat, whose least value
 * is ten seconds.
 *
 * @type {import("../system.ts").Open}
 */
export const open = async ({ url, recovers }, world) => {
  const boss = new PgBoss({
    connectionString: url,
    useListenNotify: true,
    superviseIntervalSeconds: 1,
    monitorIntervalSeconds: 1,
  });
  boss.on("error", (error) => process.stderr.write(`pg-boss: ${error.message}\n`));
  await boss.start();
  if (!recovers) await boss.createQueue(queue, { notify: true, retryLimit: 10, heartbeatSeconds: 10 });
  const kinds = {
    ten: { length: 10, step: async ({ at }) => ({ ok: true, value: payload, at }) },
    one: { length: 1, step: async () => ({ ok: true, value: payload }) },
    nap: { length: 1, step: async () => Date.now() },
    pay: {
      length: payment.length,
      step: ({ run, at }) => world.call(run, payment[at].step, payment[at].ms),
    },
  };
  const waiting = new Map();
  const handle = async (jobs) => {
    const results = await Promise.all(jobs.map(({ data }) => kinds[data.kind].step(data)));
    const isLast = ({ data }) => data.at === kinds[data.kind].length - 1;
    const after = ({ data: { kind, key, run, at } }, k) => ({
      data: { kind, key, run, at: at + 1, result: results[k] },
    });
    const next = jobs.flatMap((job, k) => (isLast(job) ? [] : [after(job, k)]));
    if (next.length > 0) await boss.insert(queue, next);
    jobs.forEach((job, k) => {
      if (!isLast(job)) return;
      waiting.get(job.data.key)?.(results[k]);
      waiting.delete(job.data.key);
    });
  };
  let count = 0;
  const run = async (kind, options) => {
    const key = ++count;
    const { promise, resolve } = Promise.withResolvers();
    waiting.set(key, resolve);
    await boss.send(queue, { kind, key, at: 0 }, options);
    return promise;
  };
  const concurrency = async (runs) => {
    await boss.offWork(queue);
    await boss.work(
      queue,
      { batchSize: runs, burstWhenBatchFull: runs > 1, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 },
      handle,
    );
  };
  return {
    pulls: false,
    concurrency,
    async ten() {
      await run("ten");
      return {};
    },
    one: () => run("one"),
    nap: (due) => run("nap", { startAfter: new Date(due) }),
    pay: (id) => boss.send(queue, { kind: "pay", run: id, at: 0 }),
    close: () => boss.stop({ graceful: false }),
  };
};
