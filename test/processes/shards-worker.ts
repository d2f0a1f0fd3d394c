import { appendFileSync } from "node:fs";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";

/** Sweeps shards. Each turn of a body that still holds its shard is written to the ledger. */
const [url = "", ledger = "", label = ""] = process.argv.slice(2);
const app = await Tape.open({ store: url, runner: createRunner({ workflows: [] }), log: "silent", work: false });
await app.singleton(
  "sweep",
  async ({ shard, token, abortSignal, assert, sleep }) => {
    while (!abortSignal.aborted) {
      assert();
      appendFileSync(ledger, `${JSON.stringify({ label, shard: shard!.index, token: String(token) })}\n`);
      await sleep("100ms");
    }
  },
  { shards: 8, ttl: "2s" },
);
process.send!({ result: "ready" });
