/** Steps that are requested at once, as in the part `wake`: systems that can record or read several together do. */
export const width = 100;

/**
 * Answers requests over IPC as ../worker.ts does. The program calls `entered` on the first line of its workflow and
 * `live` once all steps that are recorded have returned: each is called again whenever the workflow is. Other workflows
 * of the same system, with another number of steps, do not count.
 */
export function reporter({ fill, close }) {
  const { count: own } = JSON.parse(process.argv[2] ?? "{}");
  const launched = performance.now();
  let started = launched;
  const reached = Promise.withResolvers();
  const asks = {
    /** Executes the steps; the figures are those of the first execution. */
    fill: async ({ id }) => {
      await fill(id, own);
      return reached.promise;
    },
    /** Waits until the workflow of a killed process is live again. */
    wake: () => reached.promise,
    close: async () => {
      await close();
      return {};
    },
  };
  process.on("message", (message) => {
    asks[message.ask](message)
      .then((figures) => process.send({ figures }))
      .catch((error) => process.send({ error: String(error?.stack ?? error) }))
      .finally(() => message.ask === "close" && process.exit(0));
  });
  process.once("disconnect", () => process.exit(0));
  return {
    ready: () => process.send({ figures: {} }),
    entered(count) {
      if (count === own) started = performance.now();
    },
    live(count) {
      if (count !== own) return;
      const now = performance.now();
      reached.resolve({ enteredMs: now - started, launchedMs: now - launched, rssMb: process.memoryUsage.rss() / 1e6 });
    },
  };
}
