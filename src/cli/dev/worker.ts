import { Tape } from "../../host/tape.ts";
import { isTapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import { currentContext } from "../../sdk/current.ts";
import { AckLost } from "../../sdk/outcomes.ts";
import { treasuryOn, worldOn } from "../demo/treasury/agent.ts";
import { fileLedger } from "../demo/treasury/ledger.ts";
import type { FromWorker, ToWorker } from "./messages.ts";

/**
 * One worker process of the treasury: the workflow and the five reactors on the given store. Its bank pays, notifies the
 * director, and then waits for the director to deliver or lose the response. In between the worker may be killed or
 * paused.
 */
const [url = "", ledger = "", ttlMs = ""] = process.argv.slice(2);
const send = (message: FromWorker): void => void process.send?.(message);

const responses = new Map<string, (lost: boolean) => void>();
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
        responses.set(invoice, resolve);
        send({ event: "wired", invoice, id: receipt.id });
      });
      if (lost) throw new AckLost("the connection to the bank broke");
      return receipt;
    },
    async find(invoice) {
      const found = await bank.find(invoice);
      send({ event: "observed", invoice, found: found !== undefined });
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
    send({ event: "written", invoice });
  } catch (error) {
    if (!isTapeError(error)) throw error;
    send({ event: "rejected", invoice, message: error.message });
  }
}

process.on("message", async (message: ToWorker) => {
  switch (message.do) {
    case "respond":
    case "lose":
      return responses.get(message.invoice)?.(message.do === "lose");
    case "stop":
      return void process.kill(process.pid, "SIGSTOP");
    case "write":
      return write(message.invoice);
    case "quit":
      await app.close();
      process.exit(0);
  }
});
process.on("disconnect", () => process.exit(1)); // the director is gone
if (!process.connected) process.exit(1); // it was gone before this process had loaded
process.on("SIGINT", () => {}); // a terminal sends it to the whole group; the director decides when to exit
send({ event: "ready" });
