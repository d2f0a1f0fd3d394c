import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { readClocks } from "../../src/lease/belief.ts";
import { identify } from "../../src/lease/identity.ts";
import { LeaseKeeper } from "../../src/lease/keeper.ts";
import type { Lease } from "../../src/lease/lease.ts";
import { isTapeError } from "../../src/model/errors.ts";
import type { Command, Reply } from "./messages.ts";

/** A worker in a process of its own: holds one lease, heartbeats, and executes commands. */
const store = await openStore(process.argv[2]!);
const identity = identify(process.env, systemRandom);
const tenant = "default";
let lease: Lease | undefined;
let keeper: LeaseKeeper | undefined;

const holding = (held: Lease): Reply => {
  lease = held;
  const { token, fence, term } = held;
  return { result: "held", token: String(token), reason: term.reason, journal: fence.journal };
};

async function execute(command: Command): Promise<Reply> {
  if (command.do === "take") {
    const { run, ttlMs } = command;
    keeper = new LeaseKeeper({ store, identity, timings: { ttlMs } });
    const sent = readClocks(systemClock);
    const claimant = { ...identity, reactor: "agent", ttlMs };
    const request = { target: { run }, claimant, nonce: systemRandom.bits63(), expect: "free_or_expired" } as const;
    const acquired = await store.claim.acquire(tenant, request);
    if (!acquired.ok) throw acquired.error;
    return holding(keeper.adopt(run, acquired.term, sent));
  }
  if (command.do === "lead") {
    const { name, ttlMs } = command;
    keeper = new LeaseKeeper({ store, identity, timings: { ttlMs } });
    const acquired = await keeper.acquire(name);
    return acquired === undefined ? { result: "not held" } : holding(acquired);
  }
  if (lease === undefined) throw new Error(`${command.do} before a lease was acquired`);
  switch (command.do) {
    case "write":
      lease.head = (await store.fenced.append(lease.fence, { after: lease.head, records: command.records })).head;
      return { result: "accepted" };
    case "writeAsBatch": {
      const entry = { after: lease.head, records: command.records };
      const [verdict] = await store.fenced.appendAll([[lease.fence, entry]]);
      return { result: verdict!.ok ? "accepted" : verdict!.error.code };
    }
    case "writeAtHead": {
      const records = await store.read.journal(tenant, { journal: lease.fence.journal });
      await store.fenced.append(lease.fence, { after: records.length, records: command.records });
      return { result: "accepted" };
    }
    case "renew": {
      const [verdict] = await store.claim.renew([{ fence: lease.fence, progress: 1 }]);
      return { result: verdict!.ok ? "accepted" : verdict!.error.code };
    }
    case "belief":
      lease.assert(); // throws an error whose code is then the result
      return { result: lease.belief };
    case "release":
      return { result: (await lease.release()) ? "accepted" : "not acknowledged" };
    case "stop":
      throw new Error("only stopped-commit.ts stops itself");
  }
}

process.on("message", async (command: Command) => {
  const reply = await execute(command).catch((error: unknown): Reply => {
    if (!isTapeError(error)) throw error;
    return { result: error.code };
  });
  process.send!(reply);
});
process.send!({ result: "ready" } satisfies Reply);
