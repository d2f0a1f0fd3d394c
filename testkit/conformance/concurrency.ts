import { strict as assert } from "node:assert";
import { type Random, seededRandom } from "../../src/base/random.ts";
import { isTapeError } from "../../src/model/errors.ts";
import { makeFence } from "../../src/model/fence.ts";
import type { Claimant, Term } from "../../src/model/lease.ts";
import type { AppendRequest, Store } from "../../src/store/contract/store.ts";
import { checkLinearizable, type Operation, type Verdict } from "../linearizable.ts";
import { type TermInput, type TermOutput, type TermState, termModelFrom } from "../term-model.ts";
import { type Cases, claimant, nonce, record, refused, step, tenant } from "./frame.ts";
import { begin, ended } from "./holder.ts";
import { heldRuns, lasting, preempting, release, waitingRuns } from "./lease-fixtures.ts";

type History = Operation<TermInput, TermOutput>[];

/** Several clients of one journal: each waits for its own responses, none waits for another. */
class Client {
  readonly #store: Store;
  readonly #random: Random;
  readonly #target: { readonly run: string };
  /** With more clients, takeovers are rarer: each holder must have time to write. */
  readonly #force: number;
  readonly #who: Claimant = claimant(undefined, lasting);
  readonly #tick: () => number;
  readonly #history: History;
  /** The term it believes to hold, and the head it believes the journal to have. Both may be outdated. */
  #term: Term | undefined;
  #head = 1;

  constructor(store: Store, random: Random, target: { run: string }, force: number, log: [History, () => number]) {
    this.#store = store;
    this.#random = random;
    this.#target = target;
    this.#force = force;
    [this.#history, this.#tick] = log;
  }

  async operate(): Promise<void> {
    if (this.#random.float() < this.#force) return this.#take("takeover");
    const dice = this.#random.float();
    if (dice < 0.08) return this.#readLease();
    if (dice < 0.16) return this.#readHead();
    if (this.#term === undefined || dice < 0.22) return this.#take("acquire");
    if (dice < 0.3) return this.#write("release", this.#head);
    // Sometimes at a seq that is certainly not the next one.
    return this.#write("append", dice < 0.45 ? this.#head + 5 : this.#head);
  }

  async #noted(input: TermInput, work: () => Promise<TermOutput>): Promise<TermOutput> {
    const call = this.#tick();
    const output = await work();
    this.#history.push({ call, ret: this.#tick(), input, output });
    return output;
  }

  async #take(op: "acquire" | "takeover"): Promise<void> {
    const expect = op === "acquire" ? ({ expect: "free_or_expired" } as const) : preempting;
    const request = { target: this.#target, claimant: this.#who, nonce: nonce(), ...expect };
    await this.#noted({ op, owner: this.#who.owner }, async () => {
      const result = await this.#store.claim.acquire(tenant, request);
      if (!result.ok) {
        assert.equal(result.error.code, "TAPE_LEASE_HELD");
        return "refused";
      }
      this.#term = result.term;
      this.#head = result.term.head;
      return { token: result.term.fence.token, head: result.term.head };
    });
  }

  async #write(op: "append" | "release", after: number): Promise<void> {
    const term = this.#term!;
    const output = await this.#noted({ op, token: term.fence.token, seq: after + 1 }, async () => {
      try {
        if (op === "append") await this.#store.fenced.append(term.fence, { after, records: [step(after)] });
        else await release(this.#store, term, {}, after);
        return "ok";
      } catch (error) {
        if (isTapeError(error, "TAPE_FENCED")) return "fenced";
        if (isTapeError(error, "TAPE_NOT_HEAD")) return "not_head";
        throw error;
      }
    });
    if (output === "ok") this.#head = after + 1;
    // Some continue although they are stale or have released, to be rejected again.
    if (output === "fenced" && this.#random.float() < 0.6) this.#term = undefined;
  }

  async #readLease(): Promise<void> {
    await this.#noted({ op: "read lease" }, async () => {
      const view = await this.#store.read.lease(tenant, this.#target);
      return { token: view!.token, held: view!.owner !== null };
    });
  }

  async #readHead(): Promise<void> {
    await this.#noted({ op: "read head" }, async () => {
      const last = (await this.#store.read.journal(tenant, this.#target)).at(-1)!;
      this.#head = last.seq; // a stale owner may know the head: only the fence stops it
      return { head: last.seq, under: last.token };
    });
  }
}

/**
 * The rules never refuse a takeover, but it may lose a race against another change of the lease. One that had to wait
 * for the holder's locks has ended the holder's term before it starts its own, or another does. So each is judged as an
 * operation that did not end it, and as one that did.
 */
export function explained(initial: TermState, history: History): Verdict {
  const changes = ({ input, output }: History[number]) =>
    (input.op === "acquire" || input.op === "takeover" || input.op === "release") &&
    output !== "refused" &&
    output !== "fenced" &&
    output !== "not_head";
  const isLost = ({ input, output }: History[number]): boolean => input.op === "takeover" && output === "refused";
  const lost = history.filter(isLost);
  for (const one of lost) {
    const raced = history.some((other) => changes(other) && other.call < one.ret && one.call < other.ret);
    assert.ok(raced, "a takeover was refused although no other client changed the lease meanwhile");
  }
  const others = history.filter((one) => !isLost(one));
  const takeovers = history.filter(({ input }) => input.op === "takeover");
  let first: Verdict | undefined;
  for (let set = 0; set < 2 ** takeovers.length; set++) {
    const dooms = takeovers
      .filter((_, k) => (set & (1 << k)) !== 0)
      .map(({ input, ...one }) => ({
        ...one,
        input: { ...input, op: "doom" } as TermInput,
        output: "refused" as const,
      }));
    const verdict = checkLinearizable(termModelFrom(initial), [...others, ...dooms]);
    if (verdict.ok) return verdict;
    first ??= verdict;
  }
  return first!;
}

/** The journal is dense, and tokens never decrease along seq. */
async function soundJournal(store: Store, target: { run: string } | { journal: number }) {
  const records = await store.read.journal(tenant, target);
  for (const [k, { seq, token }] of records.entries()) {
    assert.equal(seq, k + 1, "the journal is dense");
    assert.ok(k === 0 || token >= records[k - 1]!.token, `the token falls at seq ${seq}`);
  }
  return records;
}

/** Concurrent clients, judged by a linearizability check. Failures print their seed. */
export const concurrency: Cases = ({ it }, fresh) => {
  it("concurrent prunes delete each run once, and none of them fails", async () => {
    const { store, another } = fresh();
    const clients = [store, await another()];
    const count = 12;
    for (let k = 0; k < count; k++) await (await begin(store)).write(ended("COMPLETED", { outcome: 1 }));
    const before = (await store.read.now()) + 1;
    const pruned = await Promise.all([0, 1, 2, 3].map((k) => clients[k % 2]!.intake.prune(tenant, before, count)));
    const left = await store.intake.prune(tenant, before, count); // one skips what another has locked
    assert.equal(
      pruned.reduce((sum, one) => sum + one, left),
      count,
    );
  });

  for (const clients of [2, 3, 5, 8]) {
    it(`the operations of ${clients} clients on one journal are linearizable`, async () => {
      const { store, another } = fresh();
      const stores = [store, await another()];
      const seen = new Set<string>();
      for (let seed = 1; seed <= 3; seed++) {
        const [run] = await waitingRuns(store, 1);
        const history: History = [];
        let now = 0;
        const client = async (k: number): Promise<void> => {
          const random = seededRandom(`${clients} clients, seed ${seed}, client ${k}`);
          const one = new Client(stores[k % 2]!, random, { run: run!.id }, 0.25 / clients, [history, () => ++now]);
          for (let n = 0; n < 120 / clients; n++) await one.operate();
        };
        await Promise.all(Array.from({ length: clients }, (_, k) => client(k)));
        const initial = { token: 0n, held: false, head: 1, under: 0n };
        const verdict = explained(initial, history);
        assert.ok(verdict.ok, verdict.ok ? "" : `${clients} clients, seed ${seed}: ${verdict.reason}`);
        const records = await soundJournal(store, { run: run!.id });
        const written = history.filter(
          ({ input, output }) =>
            output === "ok" || (typeof output === "object" && input.op !== "read lease" && "token" in output),
        );
        assert.equal(records.length, 1 + written.length, "what was acknowledged is stored, and nothing else");
        for (const { input, output } of history) {
          seen.add(`${input.op} ${typeof output === "string" ? output : "done"}`);
        }
      }
      // A history without takeovers or rejections proves nothing.
      for (const must of ["acquire done", "acquire refused", "takeover done", "append ok", "append fenced"]) {
        assert.ok(seen.has(must), `no ${must} in any history`);
      }
      const rarer = clients > 3 ? [] : ["append not_head", "release ok", "read lease done", "read head done"];
      for (const must of rarer) assert.ok(seen.has(must), `no ${must} in any history`);
    });
  }

  it("[INV-1] [INV-2] journals stay dense and complete while two clients take them from each other", async () => {
    const { store, another } = fresh();
    const stores = [store, await another()];
    const runs = await heldRuns(store, 20, claimant(undefined, lasting));
    const acknowledged = new Map<string, { seq: number; token: bigint }>();
    let fenced = 0;
    let races = 0;
    const thief = async (k: number): Promise<void> => {
      const own = stores[k]!;
      const random = seededRandom(`thief ${k}`);
      const who = claimant(undefined, lasting);
      const held = new Map<number, { fence: Term["fence"]; head: number }>();
      for (let round = 0; round < 8; round++) {
        await Promise.all(
          runs.map(async ({ journal }) => {
            if (random.float() < 0.4) return;
            const request = { target: { journal }, claimant: who, nonce: nonce(), ...preempting };
            const result = await own.claim.acquire(tenant, request);
            if (result.ok) held.set(journal, { fence: result.term.fence, head: result.term.head });
            else races++;
          }),
        );
        for (let n = 0; n < 3; n++) {
          const batch = [...held.values()].map(({ fence, head }) => {
            const mark = `thief ${k} round ${round} write ${n} journal ${fence.journal}`;
            return { fence, head, mark, entry: { after: head, records: [step(n, mark)] } satisfies AppendRequest };
          });
          const zombies: Term["fence"][] = [];
          const verdicts = await own.fenced.appendAll(batch.map(({ fence, entry }) => [fence, entry] as const));
          for (const [at, verdict] of verdicts.entries()) {
            const { fence, head, mark } = batch[at]!;
            if (verdict.ok) {
              assert.equal(verdict.head, head + 1);
              acknowledged.set(mark, { seq: verdict.head, token: fence.token });
              held.set(fence.journal, { fence, head: verdict.head });
            } else {
              assert.equal(verdict.error.code, "TAPE_FENCED", "a holder knows its journal's head, or is fenced");
              held.delete(fence.journal);
              fenced++;
              zombies.push(fence);
            }
          }
          // A stale owner that knows the head is still a stale owner.
          for (const fence of zombies.slice(0, 2)) {
            const tail = await own.read.journal(tenant, { journal: fence.journal });
            const entry = { after: tail.at(-1)!.seq, records: [step(n, "by a zombie")] };
            await refused("TAPE_FENCED", own.fenced.append(fence, entry));
          }
        }
      }
    };
    await Promise.all([thief(0), thief(1)]);
    const stored = new Map<string, { seq: number; token: bigint }>();
    for (const { journal } of runs) {
      for (const one of await soundJournal(store, { journal })) {
        if (one.kind === "step.done") stored.set(String(one.data.value), { seq: one.seq, token: one.token });
      }
    }
    assert.deepEqual(
      [...stored].sort(([a], [b]) => (a < b ? -1 : 1)),
      [...acknowledged].sort(([a], [b]) => (a < b ? -1 : 1)),
    );
    assert.ok(fenced > 20, `only ${fenced} writes were fenced`);
    assert.ok(races < 100, `${races} takeovers lost their race`);
  });

  it("of eight appends of one term at the same head exactly one is accepted", async () => {
    const { store, another } = fresh();
    const twin = await another();
    const [run] = await heldRuns(store, 1, claimant(undefined, lasting));
    const { journal, token, nonce: own } = run!.fence;
    const fence = makeFence(tenant, journal, token, own); // its serialized form reached another process
    let head = 1;
    for (let round = 0; round < 5; round++) {
      const writes = Array.from({ length: 8 }, (_, k) => {
        const by = k % 2 === 0 ? store : twin;
        return by.fenced.append(fence, {
          after: head,
          records: [step(k), record("gate.opened", { pos: round * 8 + k, name: "g" })],
        });
      });
      const settled = await Promise.allSettled(writes);
      assert.equal(settled.filter(({ status }) => status === "fulfilled").length, 1);
      for (const one of settled) {
        if (one.status === "rejected") assert.ok(isTapeError(one.reason, "TAPE_NOT_HEAD"), String(one.reason));
      }
      head += 2;
    }
    assert.equal((await soundJournal(store, { journal })).length, head);
    assert.equal((await store.read.gates(tenant, { run: run!.id })).length, 5, "what was refused left nothing behind");
  });
};
