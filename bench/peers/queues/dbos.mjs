import { DBOS } from "@dbos-inc/dbos-sdk";
import pg from "pg";

const queueName = "bench";
/** From this many jobs on, all but the first are copies of its row: their start is not measured, and takes minutes. */
const copiedFrom = 5_000;

/**
 * DBOS: a queue with partitions where keys are limited, polled every 10 ms (its default is a second). Without keys the
 * limit is that of the only worker, which its documentation recommends and which claims with SKIP LOCKED. Twenty
 * connections instead of ten.
 *
 * @type {import("./system.ts").OpenQueue}
 */
export const open = async ({ url, limits: { concurrency, perKey }, ledger, starts }, body) => {
  const database = { systemDatabaseUrl: url, systemDatabasePoolSize: 20 };
  // Without it every process takes jobs of a queue that another one has registered.
  const idle = starts ? { listenQueues: ["none"], executorID: "starter" } : {};
  DBOS.setConfig({ name: "bench", logLevel: "error", ...database, ...idle });
  DBOS.registerWorkflow((job) => DBOS.runStep(() => body(job), { name: "only" }), { name: "job" });
  await DBOS.launch();
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const enqueueOne = (job) =>
    DBOS.enqueueWorkflowWithOptions(
      {
        queueName,
        workflowName: "job",
        workflowID: job.id,
        ...(perKey !== undefined && { queuePartitionKey: job.key ?? "none" }),
      },
      job,
    );
  const copy = async ([first, ...jobs]) => {
    await enqueueOne(first);
    const named = (text, name) => `replace(${text}, '"${first[name]}"', '"' || j.${name} || '"')`;
    const changed = {
      workflow_uuid: "j.id",
      queue_partition_key: perKey === undefined ? "null" : "j.key",
      inputs: named(named("w.inputs", "id"), "key"),
      created_at: "w.created_at + j.nr",
    };
    for (let from = 0; from < jobs.length; from += 50_000) {
      const some = jobs.slice(from, from + 50_000);
      for (const table of ["workflow_status", "workflow_input"]) {
        const { rows } = await pool.query(
          `select column_name as name from information_schema.columns where table_schema = 'dbos' and table_name = '${table}'`,
        );
        const columns = rows.map(({ name }) => name);
        await pool.query(
          `insert into dbos.${table}(${columns.join(", ")})
           select ${columns.map((name) => changed[name] ?? `w.${name}`).join(", ")} from dbos.${table} w,
           unnest($1::text[], $2::text[], $3::int[]) as j(id, key, nr) where w.workflow_uuid = $4`,
          [some.map(({ id }) => id), some.map(({ key }) => key ?? "none"), some.map((_, k) => from + k), first.id],
        );
      }
    }
    await pool.query("analyze");
  };
  return {
    async enqueue(jobs) {
      if (jobs.length >= copiedFrom) return copy(jobs);
      const waiting = [...jobs];
      await Promise.all(
        Array.from({ length: 64 }, async () => {
          for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) await enqueueOne(job);
        }),
      );
    },
    serve: () =>
      DBOS.registerQueue(queueName, {
        minPollingIntervalMs: 10,
        ...(perKey === undefined && ledger === undefined
          ? { workerConcurrency: concurrency }
          : { globalConcurrency: concurrency }),
        ...(perKey !== undefined && { partitionConcurrency: perKey }),
      }),
    async left() {
      const { rows } = await pool.query(
        "select count(*)::int as left from dbos.workflow_status where queue_name = $1 and status in ('ENQUEUED', 'PENDING')",
        [queueName],
      );
      return rows[0].left;
    },
    async close() {
      await DBOS.shutdown();
      await pool.end();
    },
  };
};
