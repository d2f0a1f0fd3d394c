import { Tape } from "../../host/tape.ts";
import { fileLedger } from "./treasury/ledger.ts";
import { tripOn } from "./trip.ts";

/** A message from a worker of the reactors demo to its director: what it has just done in the world. */
export interface FromTripWorker {
  readonly event: string;
}

/**
 * One worker process of the reactors demo: the trip's code and the five reactors. The first worker starts the run and
 * never receives the airline's response, because it is killed while it waits.
 */
const [url = "", ledger = "", run = "", ttlMs = "", sleepMs = "", part = ""] = process.argv.slice(2);

const onEvent = async (event: string): Promise<void> => {
  process.send?.({ event } satisfies FromTripWorker);
  if (part === "first") await new Promise(() => {});
};
const { trip, runner } = tripOn(fileLedger(ledger), onEvent, Number(sleepMs));
const app = await Tape.open({ store: url, runner, leaseTtl: Number(ttlMs), log: "silent" });
if (part === "first") await app.start(trip, { trip: run }, { id: run });
