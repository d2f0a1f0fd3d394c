import { Tape } from "../../host/tape.ts";
import { treasuryOn, worldOn } from "./treasury/agent.ts";
import { fileLedger } from "./treasury/ledger.ts";

/** What a worker of the crash demo says to its director. */
export type FromCrashWorker =
  | { readonly say: "asked the model" }
  | { readonly say: "wired"; readonly id: string }
  | { readonly say: "looked"; readonly found: string | undefined }
  | { readonly say: "ended"; readonly outcome: unknown };

/**
 * One worker of the crash demo, in a process of its own: the treasury example on the given store and the given world. The
 * first one never hears the bank's answer, because it is killed while it waits for it.
 */
const [url = "", ledger = "", run = "", day = "", ttlMs = "", part = ""] = process.argv.slice(2);
const tell = (message: FromCrashWorker): void => void process.send?.(message);

const world = worldOn(fileLedger(ledger));
const { bank, model } = world;
const { treasury, runner } = treasuryOn({
  ...world,
  model: {
    plan(asked) {
      tell({ say: "asked the model" });
      return model.plan(asked);
    },
  },
  bank: {
    ...bank,
    async wire(order) {
      const receipt = await bank.wire(order);
      tell({ say: "wired", id: receipt.id });
      if (part === "first") await new Promise(() => {});
      return receipt;
    },
    async find(invoice) {
      const found = await bank.find(invoice);
      tell({ say: "looked", found: found?.id });
      return found;
    },
  },
});

const app = await Tape.open({ store: url, runner, leaseTtl: Number(ttlMs), log: "silent" });
const handle = await app.start(treasury, { day }, { id: run }); // the same id: the same run
const outcome = await handle.result();
await app.close();
tell({ say: "ended", outcome });
process.disconnect();
