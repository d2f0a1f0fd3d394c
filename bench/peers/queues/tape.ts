import { createRunner, queue, Tape, workflow } from "../../../src/exports/index.ts";
import type { Job, OpenQueue } from "./system.ts";

const name = "bench";
const batch = 500;

/** Tape: starts in batches, from a handle that drives nothing; a worker with room for more runs than the queue admits. */
export const open: OpenQueue = async ({ url, limits: { concurrency, perKey }, ttlSeconds }, body) => {
  const bench = queue(name, { concurrency, ...(perKey !== undefined && { perKey: { concurrency: perKey } }) });
  const job = workflow("job", async (tape, input: Job) => tape.step("only", () => body(input)), {
    queue: bench,
    key: (input) => input.key ?? "",
  });
  const options = {
    store: url,
    runner: createRunner({ workflows: [job], queues: [bench] }),
    concurrency: 5_000,
    log: "error" as const, // runs that no process serves yet are part of the workload
    ...(ttlSeconds !== undefined && { leaseTtl: `${ttlSeconds}s` as const }),
  };
  const starter = await Tape.open({ ...options, work: false });
  let worker: Tape | undefined;
  return {
    async enqueue(jobs) {
      if (jobs.length === 1) return starter.start(job, jobs[0]!, { id: jobs[0]!.id });
      for (let from = 0; from < jobs.length; from += batch)
        for (const result of await starter.startAll(
          job,
          jobs.slice(from, from + batch).map((input) => ({ input, id: input.id })),
        ))
          if (!result.ok) throw result.error;
    },
    async serve() {
      worker = await Tape.open(options);
    },
    async left() {
      const found = (await starter.queues.list()).find((view) => view.name === name);
      return found === undefined ? 0 : found.waiting + found.running;
    },
    async close() {
      await worker?.close();
      await starter.close();
    },
  };
};
