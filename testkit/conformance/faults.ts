import { strict as assert } from "node:assert";
import { isTapeError } from "../../src/model/errors.ts";
import type { Term } from "../../src/model/lease.ts";
import type { JournalRecord, NewRecord } from "../../src/model/records.ts";
import type { RunSpec, Store } from "../../src/store/contract/store.ts";
import { type Fault, type FaultPlan, faultyStore } from "../faults.ts";
import { type Cases, claimant, nonce, record, spec, step, tenant } from "./frame.ts";
import { findRequest, lasting, preempting, snapshotOfRun } from "./lease-fixtures.ts";

/**
 * A small driver of one run that knows only the rules for lost responses. It repeats calls that are named (create,
 * acquire and find with the same nonce, renew, read). It repeats a write that was not made. When a write may have been
 * made, it acquires a new term and reads.
 */
class Driver {
  readonly #store: Store;
  readonly #spec: RunSpec;
  readonly #who = claimant(undefined, lasting);
  #term: Term | undefined;
  #head = 0;

  constructor(store: Store, run: RunSpec) {
    this.#store = store;
    this.#spec = run;
  }

  /** Creates the run held, one step, a heartbeat, a park; finds it again, one step, the end. */
  async drive(): Promise<"ended" | "fenced"> {
    await this.#create();
    for (;;) {
      if (this.#term === undefined && !(await this.#acquire())) return "ended";
      const records = await this.#journal();
      const next = this.#nextOf(records);
      if (next === undefined) return "ended";
      if (next.kind === "term.ended" && !(await this.#renew())) return "fenced";
      const result = await this.#append(next);
      if (result === "fenced") return "fenced";
      if (result === "unknown") this.#term = undefined;
      else if (next.kind === "term.ended") await this.#find();
      else if (next.kind === "run.ended") return "ended";
    }
  }

  /** What is left to do according to the journal: the driver itself remembers nothing. */
  #nextOf(records: readonly JournalRecord[]): NewRecord | undefined {
    const has = (kind: string, pos?: number) =>
      records.some(
        (one) => one.kind === kind && (pos === undefined || (one.kind === "step.done" && one.data.pos === pos)),
      );
    if (has("run.ended")) return undefined;
    if (!has("step.done", 0)) return step(0);
    if (!has("term.ended")) return record("term.ended", { reason: "drained", notesTaken: 0, nextReactor: "recovery" });
    if (!has("step.done", 1)) return step(1);
    return record("run.ended", { status: "COMPLETED", notesTaken: 0, outcome: "done" });
  }

  async #create(): Promise<void> {
    const first = { ...this.#who, nonce: nonce() };
    const [verdict] = await untilAnswered(() => this.#store.intake.createRuns(tenant, [this.#spec], first));
    if (!verdict!.ok) throw verdict!.error;
    if (verdict!.term !== undefined) this.#hold(verdict!.term);
    // Created by a call whose response was lost: the same nonce returns its term, unless the run was taken over.
    else await this.#acquire({ nonce: first.nonce, expect: "free_or_expired" });
  }

  /** false: the run has ended. */
  async #acquire(more: { nonce: bigint; expect: "free_or_expired" } | undefined = undefined): Promise<boolean> {
    const request = {
      target: { run: this.#spec.id },
      claimant: this.#who,
      ...(more ?? { nonce: nonce(), ...preempting }),
    };
    const result = await untilAnswered(() => this.#store.claim.acquire(tenant, request));
    if (result.ok) this.#hold(result.term);
    else if (result.error.code === "TAPE_RUN_ENDED") return false;
    else assert.equal(result.error.code, "TAPE_LEASE_HELD");
    return true;
  }

  async #find(): Promise<void> {
    this.#term = undefined;
    const ask = findRequest({ claimant: this.#who });
    const found = await untilAnswered(() => this.#store.claim.find(ask));
    const own = found.find(({ journal }) => journal === this.#journalNumber);
    if (own !== undefined) this.#hold(own);
  }

  #journalNumber = 0;

  #hold(term: Term): void {
    this.#term = term;
    this.#head = term.head;
    this.#journalNumber = term.journal;
  }

  async #journal(): Promise<JournalRecord[]> {
    return untilAnswered(() => this.#store.read.journal(tenant, { run: this.#spec.id }));
  }

  async #renew(): Promise<boolean> {
    const renewal = { fence: this.#term!.fence, progress: 1 };
    const [verdict] = await untilAnswered(() => this.#store.claim.renew([renewal]));
    if (!verdict!.ok) assert.equal(verdict!.error.code, "TAPE_FENCED");
    return verdict!.ok;
  }

  async #append(next: NewRecord): Promise<"written" | "unknown" | "fenced"> {
    for (;;) {
      try {
        const { head } = await this.#store.fenced.append(this.#term!.fence, { after: this.#head, records: [next] });
        this.#head = head;
        return "written";
      } catch (error) {
        if (isTapeError(error, "TAPE_OUTCOME_UNKNOWN")) return "unknown";
        if (isTapeError(error, "TAPE_FENCED")) return "fenced";
        if (!isTapeError(error, "TAPE_STORE_UNREACHABLE")) throw error; // TAPE_NOT_HEAD would be a bug of the driver
      }
    }
  }
}

/** For calls that may be repeated unchanged, whatever became of them. */
async function untilAnswered<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const lost = isTapeError(error, "TAPE_STORE_UNREACHABLE") || isTapeError(error, "TAPE_OUTCOME_UNKNOWN");
      if (!lost) throw error;
    }
  }
}

async function drive(store: Store, plan: FaultPlan) {
  const run = spec();
  const faulty = faultyStore(store, plan);
  const outcome = await new Driver(faulty.store, run).drive();
  return { run, outcome, calls: faulty.calls, bitten: faulty.calls.filter(({ fault }) => fault !== undefined) };
}

/** Returns how many terms it took. */
async function soundRun(store: Store, run: RunSpec, what: string): Promise<number> {
  const records = await store.read.journal(tenant, { run: run.id });
  for (const [k, { seq, token }] of records.entries()) {
    assert.equal(seq, k + 1, `${what}: gapless`);
    assert.ok(k === 0 || token >= records[k - 1]!.token, `${what}: tokens never fall`);
  }
  const steps = records.flatMap((one) => (one.kind === "step.done" ? [one.data.pos] : []));
  assert.deepEqual(steps, [0, 1], `${what}: each step once, in order`);
  assert.equal(records.filter(({ kind }) => kind === "run.ended").length, 1, `${what}: one end`);
  assert.equal(records.at(-1)!.kind, "run.ended", `${what}: which is last`);
  const view = await store.read.run(tenant, run.id);
  assert.deepEqual([view?.status, view?.outcome, view?.lease.state], ["COMPLETED", "done", "FREE"], what);
  const terms = await store.read.terms(tenant, { run: run.id });
  assert.ok(
    terms.every(({ endReason }) => endReason !== undefined),
    `${what}: every term has ended`,
  );
  assert.equal(new Set(terms.map(({ token }) => token)).size, terms.length, `${what}: no token twice`);
  return terms.length;
}

/** Every call fails once, before and after it is made, and arrives late, when another holder has done the work. */
export const faults: Cases = ({ it }, fresh) => {
  const kinds: readonly Fault[] = ["before", "after"];

  it("without faults the run needs one call for each operation", async () => {
    const { store } = fresh();
    const { run, calls, outcome } = await drive(store, () => undefined);
    assert.equal(outcome, "ended");
    await soundRun(store, run, "no fault");
    const writes = calls.filter(({ group }) => group !== "read").map(({ method }) => method);
    assert.deepEqual(writes, ["createRuns", "append", "renew", "append", "find", "append", "append"]);
    assert.deepEqual(
      (await store.read.terms(tenant, { run: run.id })).map(({ endReason }) => endReason),
      ["drained", "released"],
    );
  });

  for (const kind of kinds) {
    it(`when any call fails once ${kind} it is made, every step is recorded once`, async () => {
      const { store } = fresh();
      const { calls } = await drive(store, () => undefined);
      for (let n = 1; n <= calls.length; n++) {
        const one = await drive(store, (call) => (call.n === n ? kind : undefined));
        const { group, method } = calls[n - 1]!;
        const what = `call ${n} (${group}.${method}) ${kind}`;
        assert.deepEqual([one.outcome, one.bitten.length], ["ended", 1], what);
        const terms = await soundRun(store, one.run, what);
        // Named calls are repeated and recognised; only a write of unknown outcome costs a new term.
        if (kind === "before" || method !== "append") assert.equal(terms, 2, what);
        else assert.ok(terms <= 3, what);
      }
    });
  }

  it("when any two calls in a row fail, every step is recorded once", async () => {
    const { store } = fresh();
    const { calls } = await drive(store, () => undefined);
    for (const first of kinds) {
      for (const second of kinds) {
        for (let n = 1; n < calls.length; n++) {
          const one = await drive(store, (call) => (call.n === n ? first : call.n === n + 1 ? second : undefined));
          const what = `calls ${n} ${first} and ${n + 1} ${second}`;
          assert.deepEqual([one.outcome, one.bitten.length], ["ended", 2], what);
          await soundRun(store, one.run, what);
        }
      }
    }
  });

  it("a call that arrives after another holder has finished changes nothing", async () => {
    const { store, another } = fresh();
    const rival = await another();
    const { calls } = await drive(store, () => undefined);
    for (let n = 1; n <= calls.length; n++) {
      const run = spec();
      const faulty = faultyStore(store, (call) => (call.n === n ? "hang" : undefined));
      const late = new Driver(faulty.store, run).drive();
      const { group, method } = await Promise.race([
        faulty.hung,
        late.then(() => assert.fail(`call ${n} did not hang`)),
      ]);
      const what = `call ${n} (${group}.${method}) hung`;
      assert.equal(await new Driver(rival, run).drive(), "ended", what);
      await soundRun(store, run, what);
      const before = await snapshotOfRun(store, run.id);
      faulty.release();
      const result = await late;
      assert.ok(result === "fenced" || result === "ended");
      if (group === "fenced") assert.equal(result, "fenced", what);
      assert.equal(await snapshotOfRun(store, run.id), before, what);
    }
  });
};
