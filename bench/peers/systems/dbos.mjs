import { DBOS } from "@dbos-inc/dbos-sdk";
import { payload, payment } from "../system.ts";

/**
 * DBOS: workflows started directly, which its documentation gives for work of the same process (a queue would add its
 * poll of a second), steps by `runStep`, recovery of the same executor at `launch`. Its pool has ten connections by
 * default; twenty is what it needs with 128 workflows at a time.
 *
 * @type {import("../system.ts").Open}
 */
export const open = async ({ url }, world) => {
  DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, systemDatabasePoolSize: 20, logLevel: "error" });
  const step = (name, body) => DBOS.runStep(body, { name });
  const ten = DBOS.registerWorkflow(
    async () => {
      for (let k = 0; k < 10; k++) await step(`step-${k}`, async () => ({ ok: true, value: payload, at: k }));
    },
    { name: "ten" },
  );
  const one = DBOS.registerWorkflow(() => step("only", async () => ({ ok: true, value: payload })), { name: "one" });
  const nap = DBOS.registerWorkflow(
    async (due) => {
      await DBOS.sleep(Math.max(1, due - Date.now()));
      return Date.now();
    },
    { name: "nap" },
  );
  const pay = DBOS.registerWorkflow(
    async (run) => {
      for (const { step: name, ms } of payment) await step(name, () => world.call(run, name, ms));
    },
    { name: "pay" },
  );
  await DBOS.launch();
  const run = async (target, input) => (await DBOS.startWorkflow(target)(input)).getResult();
  return {
    pulls: false,
    concurrency: async () => {},
    async ten() {
      await run(ten);
      return {};
    },
    one: () => run(one),
    nap: (due) => run(nap, due),
    pay: (id) => DBOS.startWorkflow(pay, { workflowID: id })(id),
    close: () => DBOS.shutdown(),
  };
};
