import { systemClock } from "../../base/clock.ts";
import { systemRandom } from "../../base/random.ts";
import { openStore } from "../../host/open-store.ts";
import { readClocks } from "../../lease/belief.ts";
import { identify } from "../../lease/identity.ts";
import { LeaseKeeper } from "../../lease/keeper.ts";
import { isTapeError } from "../../model/errors.ts";
import type { NewRecord } from "../../model/records.ts";
import { bankOn } from "./treasury/bank.ts";
import { fileLedger } from "./treasury/ledger.ts";
import { plainJournal } from "./zombie-journal.ts";
import type { FromDirector, FromWorker } from "./zombie-messages.ts";

/**
 * One worker process of the zombie demo. It drives one run: acquires its lease, heartbeats, writes steps. On request it
 * writes without checking its own clocks, as a careless program would, so only the store can stop it. With a plain file
 * as its journal nothing stops it.
 */
const [url = "", run = "", ttl = "", world = "", unfenced] = process.argv.slice(2);
const send = (message: FromWorker): void => void process.send?.(message);

const store = await openStore(url);
const identity = identify(process.env, systemRandom);
const keeper = new LeaseKeeper({ store, identity, timings: { ttlMs: Number(ttl) } });
const sent = readClocks(systemClock);
const claimant = { ...identity, reactor: "agent", ttlMs: Number(ttl) };
const acquired = await store.claim.acquire("default", {
  target: { run },
  claimant,
  nonce: systemRandom.bits63(),
  expect: "free_or_expired",
});
if (!acquired.ok) throw acquired.error;
const { term } = acquired;
const lease = keeper.adopt(run, term, sent);
let head = term.head;
send({ event: "holding", token: String(term.fence.token), reason: term.reason });

const bank = bankOn(fileLedger(world));

/** Writes the record, then runs the effect that it announces; a rejected record runs none. */
async function write(title: string, record: NewRecord, effect?: () => Promise<unknown>): Promise<void> {
  try {
    if (unfenced === undefined) {
      ({ head } = await store.fenced.append(term.fence, { after: head, records: [record] }));
    } else {
      plainJournal.append(unfenced, { token: String(term.fence.token), by: identity.label, title });
    }
  } catch (error) {
    if (!isTapeError(error)) throw error;
    send({ event: "rejected", title, code: error.code, message: error.message });
    return;
  }
  await effect?.();
  send({ event: "written", title, ...(effect === undefined ? {} : { wired: true }) });
}

const step = (pos: number, name: string): NewRecord => ({ kind: "step.done", data: { pos, name, value: "done" } });

process.on("message", async (message: FromDirector) => {
  switch (message.do) {
    case "step":
      return write(message.name, step(message.pos, message.name));
    case "pay": {
      const order = { invoice: run, account: "supplier", amount: 100 };
      return write("book the transfer", step(message.pos, "book the transfer"), () => bank.wire(order));
    }
    case "end":
      return write("end of the run", {
        kind: "run.ended",
        data: { status: "COMPLETED", outcome: { by: identity.label }, notesTaken: 0, term: lease.stats() },
      });
    case "renew": {
      const [renewed] = await store.claim.renew([{ fence: term.fence, progress: 0 }]);
      const error = renewed !== undefined && !renewed.ok ? renewed.error : undefined;
      if (error === undefined) return send({ event: "written", title: "heartbeat" });
      return send({ event: "rejected", title: "heartbeat", code: error.code, message: error.message });
    }
    case "belief":
      return send({ event: "belief", belief: lease.belief });
    case "stop":
      return void process.kill(process.pid, "SIGSTOP");
    case "quit":
      keeper.close();
      await store.close();
      process.disconnect();
  }
});
