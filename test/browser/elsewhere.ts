// Another process: starts a run in the store that it is told of, when it is told to.
import { openStore } from "../../src/host/open-store.ts";

const [, , url, id] = process.argv;
const store = await openStore(url!);
process.send?.("ready");
process.once("message", async () => {
  await store.intake.createRuns("default", [{ id: id!, workflow: "elsewhere", input: null }]);
  process.send?.("started");
  await store.close();
  process.disconnect();
});
