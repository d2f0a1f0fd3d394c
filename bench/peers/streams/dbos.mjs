import { DBOS } from "@dbos-inc/dbos-sdk";

/**
 * DBOS: one workflow writes to a stream as fast as it can, from its own code or from a step, and one reader follows it.
 * Answers as ../worker.ts does. `written` is the speed of the writer, `read` that of the reader, which polls.
 */
const { url } = JSON.parse(process.argv[2] ?? "{}");
DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, systemDatabasePoolSize: 20, logLevel: "error" });

const write = async (count) => {
  const from = performance.now();
  for (let k = 0; k < count; k++) await DBOS.writeStream("tokens", `a word, number ${k} `);
  return performance.now() - from;
};
const fromWorkflow = DBOS.registerWorkflow(
  async (count) => {
    const ms = await write(count);
    await DBOS.closeStream("tokens");
    return ms;
  },
  { name: "fromWorkflow" },
);
const fromStep = DBOS.registerWorkflow(
  async (count) => {
    const ms = await DBOS.runStep(() => write(count), { name: "write" });
    await DBOS.closeStream("tokens");
    return ms;
  },
  { name: "fromStep" },
);
await DBOS.launch();

async function burst({ from, count }) {
  const started = performance.now();
  const run = await DBOS.startWorkflow(from === "step" ? fromStep : fromWorkflow)(count);
  let seen = 0;
  for await (const _ of DBOS.readStream(run.workflowID, "tokens")) seen++;
  const readMs = performance.now() - started;
  const writtenMs = await run.getResult();
  return { seen, written: (count * 1000) / writtenMs, read: (seen * 1000) / readMs };
}

process.on("message", (message) => {
  const answer = message.ask === "close" ? DBOS.shutdown().then(() => ({})) : burst(message);
  answer
    .then((figures) => process.send({ figures }))
    .catch((error) => process.send({ error: String(error?.stack ?? error) }))
    .finally(() => message.ask === "close" && process.exit(0));
});
process.once("disconnect", () => process.exit(0));
process.send({ figures: {} });
