import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { readClocks } from "../../src/lease/belief.ts";
import { identify } from "../../src/lease/identity.ts";
import { LeaseKeeper } from "../../src/lease/keeper.ts";
import type { Lease } from "../../src/lease/lease.ts";
import { isTapeError } from "../../src/model/errors.ts";
import type { Answer, Question } from "./words.ts";

/** A worker in a process of its own: holds one lease, heartbeats, and does what it is told. */
const store = await openStore(process.argv[2]!);
const identity = identify(process.env, systemRandom);
const tenant = "default";
let lease: Lease | undefined;
let keeper: LeaseKeeper | undefined;

const holding = (held: Lease): Answer => {
  lease = held;
  const { token, fence, term } = held;
  return { say: "held", token: String(token), reason: term.reason, journal: fence.journal };
};

async function answer(question: Question): Promise<Answer> {
  if (question.do === "take") {
    const { run, ttlMs } = question;
    keeper = new LeaseKeeper({ store, identity, timings: { ttlMs } });
    const sent = readClocks(systemClock);
    const claimant = { ...identity, reactor: "agent", ttlMs };
    const request = { target: { run }, claimant, nonce: systemRandom.bits63(), expect: "free_or_expired" } as const;
    const acquired = await store.claim.acquire(tenant, request);
    if (!acquired.ok) throw acquired.error;
    return holding(keeper.adopt(run, acquired.term, sent));
  }
  if (question.do === "lead") {
    const { name, ttlMs } = question;
    keeper = new LeaseKeeper({ store, identity, timings: { ttlMs } });
    const acquired = await keeper.acquire(name);
    return acquired === undefined ? { say: "not held" } : holding(acquired);
  }
  if (lease === undefined) throw new Error(`${question.do} before a lease was taken`);
  switch (question.do) {
    case "write":
      lease.head = (await store.fenced.append(lease.fence, { after: lease.head, records: question.records })).head;
      return { say: "accepted" };
    case "writeAsBatch": {
      const entry = { after: lease.head, records: question.records };
      const [verdict] = await store.fenced.appendAll([[lease.fence, entry]]);
      return { say: verdict!.ok ? "accepted" : verdict!.error.code };
    }
    case "writeAtHead": {
      const records = await store.read.journal(tenant, { journal: lease.fence.journal });
      await store.fenced.append(lease.fence, { after: records.length, records: question.records });
      return { say: "accepted" };
    }
    case "renew": {
      const [verdict] = await store.claim.renew([{ fence: lease.fence, progress: 1 }]);
      return { say: verdict!.ok ? "accepted" : verdict!.error.code };
    }
    case "belief":
      lease.assert(); // throws what `say` then names
      return { say: lease.belief };
    case "release":
      return { say: (await lease.release()) ? "accepted" : "not told" };
    case "stop":
      throw new Error("this worker is stopped by others");
  }
}

process.on("message", async (question: Question) => {
  const say = await answer(question).catch((error: unknown): Answer => {
    if (!isTapeError(error)) throw error;
    return { say: error.code };
  });
  process.send!(say);
});
process.send!({ say: "ready" } satisfies Answer);
