import { Queue, Worker } from "bullmq";

const name = "bench";

/**
 * BullMQ: `addBulk`, one worker with the limit as its concurrency. Redis writes its log to the disk with every command
 * (`appendfsync always`), as durable as the commits of the others.
 *
 * @type {import("./system.ts").OpenQueue}
 */
export const open = async ({ url, limits: { concurrency } }, body) => {
  const connection = { url, maxRetriesPerRequest: null };
  const queue = new Queue(name, { connection });
  let worker;
  return {
    async enqueue(jobs) {
      if (jobs.length === 1) return queue.add("job", jobs[0]);
      for (let from = 0; from < jobs.length; from += 1_000)
        await queue.addBulk(jobs.slice(from, from + 1_000).map((data) => ({ name: "job", data })));
    },
    async serve() {
      worker = new Worker(name, ({ data }) => body(data), { connection, concurrency });
      worker.on("error", (error) => process.stderr.write(`bullmq: ${error.message}\n`));
      await worker.waitUntilReady();
    },
    async left() {
      const { waiting, active, prioritized } = await queue.getJobCounts("waiting", "active", "prioritized");
      return waiting + active + prioritized;
    },
    async close() {
      await worker?.close();
      await queue.close();
    },
  };
};
