import { DBOS } from "@dbos-inc/dbos-sdk";
import { payload } from "../system.ts";
import { reporter, width } from "./report.mjs";

/** DBOS: one workflow with many steps, which then waits for a message. At `launch` it recovers what its executor left. */
const { url } = JSON.parse(process.argv[2] ?? "{}");
DBOS.setConfig({ name: "endless", systemDatabaseUrl: url, systemDatabasePoolSize: 20, logLevel: "error" });
const report = reporter({
  fill: (id, count) => DBOS.startWorkflow(long, { workflowID: id })(count),
  close: () => DBOS.shutdown(),
});
const long = DBOS.registerWorkflow(
  async (count) => {
    report.entered(count);
    for (let done = 0; done < count; done += width) {
      const step = (_, k) => DBOS.runStep(async () => ({ ok: true, value: payload, at: done + k }), { name: "step" });
      await Promise.all(Array.from({ length: Math.min(width, count - done) }, step));
    }
    report.live(count);
    await DBOS.recv("go", 86_400);
  },
  { name: "long" },
);
await DBOS.launch();
report.ready();
