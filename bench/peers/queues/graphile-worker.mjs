import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const silent = new Logger(() => () => {});
/** Its two ways of work: a transaction for each job, and jobs taken and acknowledged in batches. */
const ways = {
  "graphile-worker": {},
  "graphile-batched": { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
};

/**
 * graphile-worker: a key is a named queue, which executes one job at a time. Twenty connections, as its documentation
 * asks for a larger pool beside high concurrency. It keeps no result: a finished job is deleted.
 *
 * @type {import("./system.ts").OpenQueue}
 */
export const open = async ({ system, url, limits: { concurrency, perKey } }, body) => {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const utils = await makeWorkerUtils({ connectionString: url, logger: silent });
  await utils.migrate();
  const named = ({ key }) => (perKey !== undefined && key !== undefined ? { queueName: key } : {});
  let runner;
  return {
    async enqueue(jobs) {
      if (jobs.length === 1) return utils.addJob("job", jobs[0], named(jobs[0]));
      for (let from = 0; from < jobs.length; from += 2_000)
        await utils.addJobs(
          jobs.slice(from, from + 2_000).map((job) => ({ identifier: "job", payload: job, ...named(job) })),
        );
    },
    async serve() {
      runner = await run({
        taskList: { job: body },
        noHandleSignals: true,
        preset: {
          worker: {
            connectionString: url,
            concurrentJobs: concurrency,
            maxPoolSize: 20,
            logger: silent,
            ...ways[system],
          },
        },
      });
    },
    async left() {
      const { rows } = await pool.query("select count(*)::int as left from graphile_worker._private_jobs");
      return rows[0].left;
    },
    async close() {
      await runner?.stop();
      await utils.release();
      await pool.end();
    },
  };
};
