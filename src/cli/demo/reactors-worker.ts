import { Tape } from "../../host/tape.ts";
import { fileLedger } from "./treasury/ledger.ts";
import { tripOn } from "./trip.ts";

/** What a worker of the reactors demo says to its director: what it has just done in the world. */
export interface FromTripWorker {
  readonly act: string;
}

/**
 * One worker of the reactors demo, in a process of its own: the trip's code and the five reactors. The first one starts
 * the run and never hears the airline's answer, because it is killed while it waits for it.
 */
const [url = "", ledger = "", run = "", ttlMs = "", restMs = "", part = ""] = process.argv.slice(2);

const told = async (act: string): Promise<void> => {
  process.send?.({ act } satisfies FromTripWorker);
  if (part === "first") await new Promise(() => {});
};
const { trip, runner } = tripOn(fileLedger(ledger), told, Number(restMs));
const app = await Tape.open({ store: url, runner, leaseTtl: Number(ttlMs), log: "silent" });
if (part === "first") await app.start(trip, { trip: run }, { id: run });
