import { Tape } from "../../host/tape.ts";
import { treasuryOn, worldOn } from "./treasury/agent.ts";
import { fileLedger } from "./treasury/ledger.ts";

/** Messages from a worker of the crash demo to its director. */
export type FromCrashWorker =
  | { readonly event: "planned" }
  | { readonly event: "wired"; readonly id: string }
  | { readonly event: "observed"; readonly found: string | undefined }
  | { readonly event: "ended"; readonly outcome: unknown };

/**
 * One worker process of the crash demo: the treasury example on the given store and the given world. The first worker
 * never receives the bank's response, because it is killed while it waits.
 */
const [url = "", ledger = "", run = "", day = "", ttlMs = "", part = ""] = process.argv.slice(2);
const send = (message: FromCrashWorker): void => void process.send?.(message);

const world = worldOn(fileLedger(ledger));
const { bank, model } = world;
const { treasury, runner } = treasuryOn({
  ...world,
  model: {
    plan(day) {
      send({ event: "planned" });
      return model.plan(day);
    },
  },
  bank: {
    ...bank,
    async wire(order) {
      const receipt = await bank.wire(order);
      send({ event: "wired", id: receipt.id });
      if (part === "first") await new Promise(() => {});
      return receipt;
    },
    async find(invoice) {
      const found = await bank.find(invoice);
      send({ event: "observed", found: found?.id });
      return found;
    },
  },
});

const app = await Tape.open({ store: url, runner, leaseTtl: Number(ttlMs), log: "silent" });
const handle = await app.start(treasury, { day }, { id: run }); // the same id: the same run
const outcome = await handle.result();
await app.close();
send({ event: "ended", outcome });
process.disconnect();
