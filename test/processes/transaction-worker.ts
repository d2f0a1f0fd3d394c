import { Tape } from "../../src/host/tape.ts";
import type { Workflow } from "../../src/sdk/workflow.ts";
import { approval, type DyingOptions, openShop, shopRunner } from "./transaction-world.ts";

/** A process that dies by SIGKILL around the commit of a transaction of its own. */
const { url, ttlMs, dies } = JSON.parse(process.argv[2]!) as DyingOptions;
const die = (): void => {
  process.kill(process.pid, "SIGKILL");
  for (;;); // nothing more of this process happens
};
const shop = await openShop(url, dies === "after" ? die : () => {});
const runner = shopRunner(shop, dies === "inside" ? die : () => {});
const app = await Tape.open({ store: url, runner, leaseTtl: ttlMs, work: dies !== "start" });
const order = runner.workflows.get("order") as unknown as Workflow<string, string>;
if (dies !== "start") {
  await app.start(order, "step", { id: "step" });
} else {
  const { connection: transaction } = shop;
  for (const which of ["kept", "lost"]) {
    await shop.run(url.startsWith("sqlite:") ? "begin immediate" : "begin");
    await app.start(order, `order of ${which}`, { id: which, transaction });
    await app.signal("waiting", approval, which, { transaction });
    if (which === "lost") die();
    await shop.run("commit");
  }
}
