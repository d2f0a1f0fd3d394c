// A process of one build, as a deployment runs it: it drives runs until SIGTERM, and hands back what it holds.
import { Tape } from "../../../src/host/tape.ts";
import { createRunner } from "../../../src/sdk/workflow.ts";
import { fileLog } from "../file-log.ts";
import { type Build, orderOf } from "./program.ts";

export interface ProcessOrders {
  readonly url: string;
  readonly build: Build;
  readonly ttlMs: number;
  readonly log: string;
}

const { url, build, ttlMs, log } = JSON.parse(process.argv[2]!) as ProcessOrders;
process.on("disconnect", () => process.exit()); // the parent has ended
const runner = createRunner({ build, workflows: [orderOf(build)] });
const app = await Tape.open({ store: url, runner, leaseTtl: ttlMs, log: fileLog(log) });
process.once("SIGTERM", () => {
  void app.close().then(() => process.exit(0));
});
process.send!("ready");
