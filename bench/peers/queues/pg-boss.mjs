import pg from "pg";
import { PgBoss } from "pg-boss";

const queue = "bench";

/**
 * pg-boss with LISTEN/NOTIFY, and a result of its own for each job of a batch (`perJobResults`), as the others have. Without
 * keys two workers take batches and fetch again at once while batches are full: quicker here than one or four. With
 * keys (groups) a batch that holds jobs of a full group comes back short and would end that; so as many workers as jobs
 * may be at work take one job each, and fetch again at once while jobs are ready.
 *
 * @type {import("./system.ts").OpenQueue}
 */
export const open = async ({ url, limits: { concurrency, perKey }, ledger }, body) => {
  const boss = new PgBoss({
    connectionString: url,
    max: 20,
    useListenNotify: true,
    superviseIntervalSeconds: 1,
    monitorIntervalSeconds: 1,
    queueCacheIntervalSeconds: 1,
  });
  boss.on("error", (error) => process.stderr.write(`pg-boss: ${error.message}\n`));
  await boss.start();
  const heartbeat = ledger === undefined ? {} : { heartbeatSeconds: 10, retryLimit: 1_000 };
  if ((await boss.getQueue(queue)) === null) await boss.createQueue(queue, { notify: true, ...heartbeat });
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const grouped = perKey !== undefined || ledger !== undefined;
  const groupOf = ({ key }) => {
    if (ledger !== undefined) return { group: { id: "all" } }; // a limit over all processes exists for groups alone
    return grouped && key !== undefined ? { group: { id: key } } : {};
  };
  const settle = async ({ id, data }) => ({ id, status: "completed", output: await body(data) });
  return {
    async enqueue(jobs) {
      if (jobs.length === 1) return boss.send(queue, jobs[0], groupOf(jobs[0]));
      for (let from = 0; from < jobs.length; from += 5_000)
        await boss.insert(
          queue,
          jobs.slice(from, from + 5_000).map((job) => ({ data: job, ...groupOf(job) })),
        );
    },
    serve: () =>
      boss.work(
        queue,
        {
          perJobResults: true,
          pollingIntervalSeconds: 0.5,
          notifyPollingIntervalSeconds: 0.5,
          ...(grouped
            ? {
                batchSize: 1,
                localConcurrency: concurrency,
                groupConcurrency: ledger === undefined ? perKey : concurrency,
                burstWhenReadyExceeds: 1,
              }
            : { batchSize: Math.ceil(concurrency / 2), localConcurrency: 2, burstWhenBatchFull: true }),
        },
        (jobs) => Promise.all(jobs.map(settle)),
      ),
    async left() {
      const { rows } = await pool.query(
        "select count(*)::int as left from pgboss.job where name = $1 and state < 'completed'",
        [queue],
      );
      return rows[0].left;
    },
    async close() {
      await boss.stop({ graceful: false });
      await pool.end();
    },
  };
};
