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
 * One worker of the zombie demo, in a process of its own. It drives one run: acquires its lease, heartbeats, writes
 * steps. Told to, it writes without looking at its own clocks first, as a careless program would: what then stops it is
 * the store alone. With a file for its journal there is nothing that would.
 */
const [url = "", run = "", ttl = "", world = "", unfenced] = process.argv.slice(2);
const tell = (message: FromWorker): void => void process.send?.(message);

const store = await openStore(url);
const identity = identify(process.env, systemRandom);
const keeper = new LeaseKeeper({ store, identity, timings: { ttlMs: Number(ttl) } });
const sent = readClocks(systemClock);
const claimant = { ...identity, reactor: "agent", ttlMs: Number(ttl) };
const answer = await store.claim.acquire("default", {
  target: { run },
  claimant,
  nonce: systemRandom.bits63(),
  expect: "free_or_expired",
});
if (!answer.ok) throw answer.error;
const { term } = answer;
const lease = keeper.adopt(run, term, sent);
let head = term.head;
tell({ say: "holding", token: String(term.fence.token), reason: term.reason });

const bank = bankOn(fileLedger(world));

/** Writes, then does what the record announces; a refused record announces nothing. */
async function write(title: string, record: NewRecord, act?: () => Promise<unknown>): Promise<void> {
  try {
    if (unfenced === undefined) {
      ({ head } = await store.fenced.append(term.fence, { after: head, records: [record] }));
    } else {
      plainJournal.append(unfenced, { token: String(term.fence.token), by: identity.label, title });
    }
  } catch (error) {
    if (!isTapeError(error)) throw error;
    tell({ say: "refused", title, code: error.code, message: error.message });
    return;
  }
  await act?.();
  tell({ say: "written", title, ...(act === undefined ? {} : { wired: true }) });
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
        data: { status: "COMPLETED", outcome: { by: identity.label }, taken: 0, term: lease.stats() },
      });
    case "renew": {
      const [verdict] = await store.claim.renew([{ fence: term.fence, progress: 0 }]);
      const refused = verdict !== undefined && !verdict.ok ? verdict.error : undefined;
      if (refused === undefined) return tell({ say: "written", title: "heartbeat" });
      return tell({ say: "refused", title: "heartbeat", code: refused.code, message: refused.message });
    }
    case "belief":
      return tell({ say: "belief", belief: lease.belief });
    case "stop":
      return void process.kill(process.pid, "SIGSTOP");
    case "quit":
      keeper.close();
      await store.close();
      process.disconnect();
  }
});
