import { DBOS } from "@dbos-inc/dbos-sdk";

/** DBOS: one workflow that starts many children, some at a time, each with one step. Answers as ../worker.ts does. */
const { url } = JSON.parse(process.argv[2] ?? "{}");
DBOS.setConfig({ name: "map", systemDatabaseUrl: url, systemDatabasePoolSize: 20, logLevel: "error" });
const leaf = DBOS.registerWorkflow((n) => DBOS.runStep(async () => 2 * n, { name: "double" }), { name: "leaf" });
const all = DBOS.registerWorkflow(
  async (count, concurrency) => {
    let next = 0;
    let sum = 0;
    const work = async () => {
      while (next < count) {
        const doubled = await (await DBOS.startWorkflow(leaf)(next++)).getResult();
        sum += doubled;
      }
    };
    await Promise.all(Array.from({ length: concurrency }, work));
    return sum;
  },
  { name: "all" },
);
await DBOS.launch();

async function map({ count, concurrency }) {
  const started = performance.now();
  const sum = await (await DBOS.startWorkflow(all)(count, concurrency)).getResult();
  if (sum !== count * (count - 1)) throw new Error(`the children return ${sum}`);
  return { ms: performance.now() - started };
}

process.on("message", (message) => {
  const answer = message.ask === "close" ? DBOS.shutdown().then(() => ({})) : map(message);
  answer
    .then((figures) => process.send({ figures }))
    .catch((error) => process.send({ error: String(error?.stack ?? error) }))
    .finally(() => message.ask === "close" && process.exit(0));
});
process.once("disconnect", () => process.exit(0));
process.send({ figures: {} });
