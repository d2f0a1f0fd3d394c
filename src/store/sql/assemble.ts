import { defined } from "../../base/defined.ts";
import type { Random } from "../../base/random.ts";
import { callbackSecret } from "../../model/callback-token.ts";
import type { Term } from "../../model/lease.ts";
import type { Limits } from "../../model/limits.ts";
import type { ClaimOps, FencedOps, FindRequest, Store } from "../contract/store.ts";
import { sealUnder } from "../cursor-seal.ts";
import { runBatch, staleError } from "../validate/arguments.ts";
import { checkBlobPart } from "../validate/blobs.ts";
import { checkEntry, checkFence, checkList } from "../validate/entry.ts";
import { validated } from "../validate/store.ts";
import { checkChunks } from "../validate/streams.ts";
import type { SqlBackend } from "./backend.ts";
import { intakesOf, storeSecret } from "./intake.ts";
import { queryRow } from "./plan.ts";
import { whyFenced } from "./plans/append.ts";
import { findPlan } from "./plans/backlogs.ts";
import { putBlobPlan } from "./plans/blobs.ts";
import { pausePlan, peekPlan, restoredPlan } from "./plans/claim.ts";
import { checkpointPlan, deadLetterPlan, letterSentPlan } from "./plans/events.ts";
import { sweepStreamsPlan } from "./plans/streams.ts";
import { readOf } from "./read.ts";
import { retentionOf } from "./retention.ts";
import { withinOf } from "./within.ts";

/** The contract on top of a backend: encodes the input, then runs one plan. `validated` has checked every argument. */
export function assembleStore(driver: SqlBackend, random: Random): Store {
  const { backend, limits, transactionBoundMs, exclusive } = driver;
  const seal = sealUnder(async () => String((await driver.read(queryRow("feed.key"), undefined))?.key), random);
  const secrets = { secret: storeSecret(driver), seal };
  return validated({
    backend,
    limits,
    transactionBoundMs,
    exclusive,
    ...intakesOf(driver, limits, secrets),
    claim: claimOf(driver, random),
    fenced: fencedOf(driver, limits),
    read: readOf(driver, limits, secrets),
    ...(isOpenToCallers(driver) && { within: withinOf(driver, limits) }),
    retention: retentionOf(driver, limits, seal),
    health: () => driver.health(),
    onWake: (listener) => driver.onWake(listener),
    close: () => driver.close(),
  });
}

const isOpenToCallers = (driver: SqlBackend): driver is SqlBackend & Required<Pick<SqlBackend, "callers">> =>
  "callers" in driver;

function fencedOf(driver: SqlBackend, limits: Limits): FencedOps {
  // Not an async function: returning a promise through one costs every append three more turns of the microtask queue.
  const append: FencedOps["append"] = (fence, entry) => {
    try {
      checkFence(fence);
      return driver.append(fence, checkEntry(entry, limits));
    } catch (error) {
      return Promise.reject(error);
    }
  };
  return {
    append,
    async appendAll(batch) {
      return runBatch(batch, limits, async (item) => {
        checkList("a batch's item", item);
        return append(item[0], item[1]);
      });
    },
    appendChunks: appendChunksOf(driver, limits),
    async putBlob(fence, part) {
      const checked = checkBlobPart(fence, part, limits);
      return driver.write((context) => putBlobPlan(context, fence, checked), fence.tenant);
    },
    async checkpoint(fence, text) {
      return driver.write(() => checkpointPlan(fence, text), fence.tenant);
    },
    async deadLetter(fence, letter) {
      return driver.write(() => deadLetterPlan(fence, letter), fence.tenant);
    },
    async letterSent(fence, event) {
      return driver.write(() => letterSentPlan(fence, event), fence.tenant);
    },
  };
}

/** Expired streams are deleted once per this many calls: readers do not see them, whenever that is. */
const callsPerSweep = 256;

function appendChunksOf(driver: SqlBackend, limits: Limits): FencedOps["appendChunks"] {
  let calls = 0;
  let above = 0;
  return async (batch) => {
    const results = await runBatch(batch, limits, async (item) => {
      checkList("a batch's item", item);
      const [fence, append] = item;
      return driver.appendChunks(fence, checkChunks(fence, append, limits));
    });
    if (++calls % callsPerSweep === 0) {
      const sweep = driver.write(() => sweepStreamsPlan(above)).catch(() => 0); // the next sweep finds them
      void sweep.then((next) => {
        above = next;
      });
    }
    return results;
  };
}

/** Admits runs of queues, one transaction for each. A queue that fails does not take back what others have granted. */
async function admitFrom(
  driver: SqlBackend,
  rooms: ReadonlyMap<string, number>,
  request: FindRequest,
  found: number,
  turn: number,
): Promise<Term[]> {
  const names = [...rooms.keys()];
  const terms: Term[] = [];
  for (let k = 0; k < names.length; k++) {
    const name = names[(k + turn) % names.length]!;
    const room = Math.min(rooms.get(name)!, request.limit - found - terms.length);
    if (room <= 0) continue;
    try {
      terms.push(...(await driver.admit(name, room, request)));
    } catch (error) {
      if (found + terms.length === 0) throw error;
      break; // the terms that were granted are in use; the next find reports the error again
    }
  }
  return terms;
}

function claimOf(driver: SqlBackend, random: Random): ClaimOps {
  /** Begins with another queue each time, so that none comes last when there is little room. */
  let turn = 0;
  return {
    async acquire(tenant, request) {
      return (await driver.read(peekPlan(tenant, request), tenant)) ?? driver.acquire(tenant, request);
    },
    async find(request) {
      const found = await driver.read(findPlan(request), request.tenant);
      const { queues, share } = request;
      const rooms = queues && new Map(queues.map(({ name, room }) => [name, room]));
      const claim = { ...request, ...defined({ rooms }) };
      const terms = found.size === 0 ? [] : await driver.take([...found.keys()], claim);
      if (rooms !== undefined) return [...terms, ...(await admitFrom(driver, rooms, request, terms.length, turn++))];
      if (share === undefined) return terms;
      return terms.map((term) => ({ ...term, callee: found.get(term.journal) ?? "" }));
    },
    async renew(renewals) {
      return renewals.length === 0 ? [] : driver.renew(renewals);
    },
    async callbackSecret(fence) {
      const { tenant, journal, token, nonce } = fence;
      const row = await driver.read(queryRow("callback.secret", { tenant, journal, token, nonce }), tenant);
      if (row === undefined) throw staleError(fence, await driver.read(whyFenced(fence), tenant));
      return callbackSecret(String(row.secret), journal);
    },
    async pause(tenant, name, paused, by, auditReason, via) {
      const nonce = random.bits63();
      await driver.preempt(
        (context) => pausePlan(context, tenant, name, paused, { by, auditReason, nonce, via }),
        tenant,
      );
    },
    async restored(reason, by, via, home) {
      const audit = by === undefined ? undefined : { by, reason, ...defined({ via, home }) };
      return (await driver.write(() => restoredPlan(reason, "meta.restored", audit)))!;
    },
  };
}
