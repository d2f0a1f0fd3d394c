// Another process: creates the run with this id in this store when it receives a message.
import { openStore } from "../../src/host/open-store.ts";

const [, , url, id] = process.argv;
const store = await openStore(url!);
process.send?.("ready");
process.once("message", async () => {
  await store.intake.createRuns("default", [{ id: id!, workflow: "other", input: null }]);
  process.send?.("started");
  await store.close();
  process.disconnect();
});
