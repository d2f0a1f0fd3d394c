import { Tape } from "../../host/tape.ts";
import { isTapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import { currentContext } from "../../sdk/current.ts";
import { AckLost } from "../../sdk/outcomes.ts";
import { treasuryOn, worldOn } from "../demo/treasury/agent.ts";
import { fileLedger } from "../demo/treasury/ledger.ts";
import type { FromWorker, ToWorker } from "./messages.ts";

/**
 * One worker of the treasury, in a process of its own: the workflow and the five reactors on the given store. Its bank
 * acts, tells the director so, and then waits to be told whether its answer arrives: between the two the worker may be
 * killed or stopped.
 */
const [url = "", ledger = "", ttlMs = ""] = process.argv.slice(2);
const tell = (message: FromWorker): void => void process.send?.(message);

const answers = new Map<string, (lost: boolean) => void>();
const fences = new Map<string, Fence>();
const world = worldOn(fileLedger(ledger));
const { bank } = world;
const { runner } = treasuryOn({
  ...world,
  bank: {
    ...bank,
    async wire(order) {
      const { invoice } = order;
      fences.set(invoice, currentContext().fence);
      const receipt = await bank.wire(order);
      const lost = await new Promise<boolean>((resolve) => {
        answers.set(invoice, resolve);
        tell({ say: "wired", invoice, id: receipt.id });
      });
      if (lost) throw new AckLost("the connection to the bank broke");
      return receipt;
    },
    async find(invoice) {
      const found = await bank.find(invoice);
      tell({ say: "looked", invoice, found: found !== undefined });
      return found;
    },
  },
});

const app = await Tape.open({ store: url, runner, leaseTtl: Number(ttlMs), log: "silent" });

async function write(invoice: string): Promise<void> {
  const fence = fences.get(invoice)!;
  const records = await app.store.read.journal(app.tenant, { journal: fence.journal });
  const { seq: after, kind } = records.at(-1)!;
  try {
    const data = { pos: records.length, name: `written after ${kind}`, value: null };
    await app.store.fenced.append(fence, { after, records: [{ kind: "step.done", data }] });
    tell({ say: "written", invoice });
  } catch (error) {
    if (!isTapeError(error)) throw error;
    tell({ say: "refused", invoice, message: error.message });
  }
}

process.on("message", async (message: ToWorker) => {
  switch (message.do) {
    case "answer":
    case "lose":
      return answers.get(message.invoice)?.(message.do === "lose");
    case "stop":
      return void process.kill(process.pid, "SIGSTOP");
    case "write":
      return write(message.invoice);
    case "quit":
      await app.close();
      process.exit(0);
  }
});
process.on("disconnect", () => process.exit(1)); // nobody is left to tell it anything
if (!process.connected) process.exit(1); // nor was, when it had loaded
process.on("SIGINT", () => {}); // a terminal sends it to everybody; the director says when to go
tell({ say: "ready" });
