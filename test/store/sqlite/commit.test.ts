import { readFileSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../../../src/host/open-store.ts";
import type { Store, WakeHint } from "../../../src/store/contract/store.ts";
import {
  acquired,
  claimant,
  forged,
  heldRun,
  record,
  request,
  step,
  tenant,
} from "../../../testkit/conformance/frame.ts";
import { codeOf } from "../postgres/scene.ts";
import { type Place, placeForFile } from "./files.ts";

let place: Place;
beforeEach(() => {
  place = placeForFile();
});
afterEach(() => place.close());

const lasting = claimant("holder", { ttlMs: 60_000 });
const held = (store: Store) => heldRun(store, {}, lasting);
const lengths = async (store: Store, runs: readonly { id: string }[]) =>
  Promise.all(runs.map(async ({ id }) => (await store.read.journal(tenant, { run: id })).length));

/** A database whose next COMMIT fails: after it was executed, or instead. It counts its connections. */
class Faults {
  next: "after" | "before" | undefined;
  /** How often reopening the file fails. */
  closed = 0;
  /** What another process does to the file between the failure and the next check. */
  meanwhile: ((file: string) => void) | undefined;
  bitten = 0;
  opened = 0;

  readonly open = (file: string): DatabaseSync => {
    if (this.closed-- > 0) throw new Error("no such device");
    if (this.bitten > 0) this.meanwhile?.(file);
    this.opened++;
    return new FailingDatabase(file, this);
  };

  commit(statement: StatementSync): StatementSync {
    const run = (): ReturnType<StatementSync["run"]> => {
      const when = this.next;
      this.next = undefined;
      const done = when === "before" ? { changes: 0, lastInsertRowid: 0 } : statement.run();
      if (when === undefined) return done;
      this.bitten++;
      throw new Error("disk I/O error");
    };
    return { run } as unknown as StatementSync;
  }
}

class FailingDatabase extends DatabaseSync {
  readonly #faults: Faults;
  constructor(file: string, faults: Faults) {
    super(file, { timeout: 0 });
    this.#faults = faults;
  }
  override prepare(sql: string): StatementSync {
    const statement = super.prepare(sql);
    return sql === "commit" ? this.#faults.commit(statement) : statement;
  }
}

describe("a COMMIT that fails", () => {
  let faults: Faults;
  let store: Store;
  beforeEach(async () => {
    faults = new Faults();
    store = await place.open({ open: faults.open });
  });

  it("[INV-7] after it was executed is detected: callers get their results, nothing is written twice", async () => {
    const runs = await Promise.all(Array.from({ length: 10 }, () => held(store)));
    const wakes: WakeHint[] = [];
    store.onWake((wake) => wakes.push(wake));
    faults.next = "after";
    const value = store.intake.putValue(tenant, "k", 1, "must_create");
    const verdicts = await store.fenced.appendAll(
      runs.map((run, k) => [k === 3 ? forged(run, { token: 9n }) : run.fence, { after: 1, records: [step(0)] }]),
    );
    expect(faults.bitten).toBe(1);
    expect(verdicts.map((v) => (v.ok ? v.head : v.error.code))).toEqual(
      runs.map((_, k) => (k === 3 ? "TAPE_FENCED" : 2)),
    );
    expect((await value).version).toBe(1);
    expect(wakes).toContainEqual({ of: "value", tenant, key: "k" });
    expect(await lengths(store, runs)).toEqual(runs.map((_, k) => (k === 3 ? 1 : 2)));
    const next = await store.fenced.append(runs[0]!.fence, { after: 2, records: [step(1)] });
    expect(next.head).toBe(3);
  });

  it("before it was executed has written nothing, and each caller gets the error", async () => {
    const runs = await Promise.all(Array.from({ length: 5 }, () => held(store)));
    faults.next = "before";
    const verdicts = await store.fenced.appendAll(runs.map((run) => [run.fence, { after: 1, records: [step(0)] }]));
    expect(faults.bitten).toBe(1);
    expect(verdicts.map((v) => (v.ok ? "done" : v.error.code))).toEqual(runs.map(() => "TAPE_STORE_UNREACHABLE"));
    expect(await lengths(store, runs)).toEqual(runs.map(() => 1));
    // The terms are still valid, and nothing remembered of the failed group is used.
    const retried = await store.fenced.appendAll(runs.map((run) => [run.fence, { after: 1, records: [step(0)] }]));
    expect(retried.every((verdict) => verdict.ok && verdict.head === 2)).toBe(true);
  });

  it.each(["after", "before"] as const)("of a group without a record of its own, %s", async (when) => {
    const run = await held(store);
    faults.next = when;
    const renewing = store.claim.renew([{ fence: run.fence, progress: 7 }]);
    if (when === "after") expect(await renewing).toMatchObject([{ ok: true }]);
    else expect(await codeOf(renewing)).toBe("TAPE_STORE_UNREACHABLE");
    expect((await store.read.lease(tenant, { run: run.id }))?.progress).toBe(when === "after" ? 7 : 0);
    faults.next = when;
    const put = codeOf(store.intake.putValue(tenant, "k", 1, "must_create"));
    expect(await put).toBe(when === "after" ? "done" : "TAPE_STORE_UNREACHABLE");
    expect((await store.read.value(tenant, "k"))?.version).toBe(when === "after" ? 1 : undefined);
    expect(faults.bitten).toBe(2);
  });

  it.each(["after", "before"] as const)("of a new run, %s: its first record is the proof", async (when) => {
    await held(store); // reserves the block of journal numbers
    const witnesses = () => place.raw().prepare("select count(*) as n from witness").get()?.n;
    const before = witnesses();
    faults.next = when;
    const creating = store.intake.createRuns(tenant, [{ id: "new", workflow: "w", input: 1 }]);
    const [created] = await creating;
    expect(created).toMatchObject(
      when === "after" ? { ok: true, fresh: true } : { ok: false, error: { code: "TAPE_STORE_UNREACHABLE" } },
    );
    expect((await store.read.run(tenant, "new"))?.id).toBe(when === "after" ? "new" : undefined);
    expect([faults.bitten, witnesses()]).toEqual([1, before]);
  });

  it("of a new run that reserves numbers: a rival with the same number is not mistaken for it", async () => {
    faults.next = "before";
    faults.meanwhile = (file) => {
      using rival = new DatabaseSync(file);
      const row = rival.prepare("update meta set next_journal = next_journal + 1000 returning next_journal").get();
      rival.exec(`insert into records(journal, seq, token, at, kind, body)
        values (${Number(row?.next_journal) - 1000}, 1, 0, 0, 'run.created', '{}')`);
    };
    const [created] = await store.intake.createRuns(tenant, [{ id: "new", workflow: "w", input: 1 }]);
    expect(created).toMatchObject({ ok: false, error: { code: "TAPE_STORE_UNREACHABLE" } });
    expect(faults.bitten).toBe(1);
  });

  it.each(["after", "before"] as const)("of a takeover, %s: no token is lost or issued twice", async (when) => {
    const run = await held(store);
    const acquire = request({ run: run.id }, { claimant: lasting, expect: "any", by: "ann", auditReason: "drill" });
    faults.next = when;
    const first = await codeOf(store.claim.acquire(tenant, acquire));
    expect(first).toBe(when === "after" ? "done" : "TAPE_STORE_UNREACHABLE");
    const term = await acquired(store, acquire); // the same attempt, repeated
    expect(term.fence.token).toBe(2n);
    expect(await store.read.terms(tenant, { run: run.id })).toHaveLength(2);
    expect(await codeOf(store.fenced.append(run.fence, { after: 1, records: [step(0)] }))).toBe("TAPE_FENCED");
    expect((await store.fenced.append(term.fence, { after: term.head, records: [step(0)] })).head).toBe(3);
  });

  it("of a takeover, with a faster rival: the rival's identical token is not mistaken for ours", async () => {
    const run = await held(store);
    const acquire = request({ run: run.id }, { claimant: lasting, expect: "any", by: "ann", auditReason: "drill" });
    faults.next = "before";
    faults.meanwhile = (file) => {
      using rival = new DatabaseSync(file);
      rival.exec(`update leases set token = token + 1, nonce = 77, owner = 'rival' where journal = ${run.journal}`);
      rival.exec(`insert into records(journal, seq, token, at, kind, body)
        values (${run.journal}, 2, 2, 0, 'term.started', '{"owner":"rival"}')`);
    };
    expect(await codeOf(store.claim.acquire(tenant, acquire))).toBe("TAPE_STORE_UNREACHABLE");
    expect(faults.bitten).toBe(1);
    expect((await store.read.lease(tenant, { run: run.id }))?.owner).toBe("rival");
  });

  it("and a file that cannot be reopened: the outcome is unknown; later writes work once it can", async () => {
    const run = await held(store);
    faults.next = "after";
    faults.closed = 2;
    const lost = store.fenced.append(run.fence, { after: 1, records: [step(0)] });
    expect(await codeOf(lost)).toBe("TAPE_OUTCOME_UNKNOWN");
    expect(await codeOf(store.intake.putValue(tenant, "k", 1, "must_create"))).toBe("TAPE_STORE_UNREACHABLE");
    expect((await store.intake.putValue(tenant, "k", 1, "must_create")).version).toBe(1);
    // The advice of that error: read. It had been written.
    expect(await lengths(store, [run])).toEqual([2]);
    expect((await store.fenced.append(run.fence, { after: 2, records: [step(1)] })).head).toBe(3);
  });
});

describe("a COMMIT that fails in memory", () => {
  it.each(["after", "before"] as const)("(%s) closes the store and says so to each, now and later", async (when) => {
    const faults = new Faults();
    const store = await openStore("memory:", { open: faults.open });
    const run = await held(store);
    const wakes: WakeHint[] = [];
    store.onWake((wake) => wakes.push(wake));
    faults.next = when;
    // More than one transaction takes: the last of them is still in the queue.
    const writes = Array.from({ length: 1_001 }, (_, k) => store.intake.putValue(tenant, `k${k}`, 1, "must_create"));
    const gone = { code: "TAPE_STORE_CLOSED", message: expect.stringMatching(/disk I\/O error.*its data is lost/) };
    const refused = (call: Promise<unknown>) => expect(call).rejects.toMatchObject(gone);
    await Promise.all(writes.map(refused));
    expect([faults.bitten, faults.opened, wakes]).toEqual([1, 1, []]);
    await refused(store.fenced.append(run.fence, { after: 1, records: [step(0)] }));
    await refused(store.read.value(tenant, "k0"));
    await refused(store.health());
    await store.close();
  });
});

describe("group commit", () => {
  /** Commits in the write-ahead log: frames that contain the size of the database after them. */
  function commits(): number {
    const log = readFileSync(`${place.file}-wal`);
    const page = log.readUInt32BE(8);
    const salt = log.subarray(16, 24);
    let count = 0;
    for (let at = 32; at + 24 + page <= log.length; at += 24 + page) {
      const current = log.subarray(at + 8, at + 16).equals(salt); // older frames have another one
      if (current && log.readUInt32BE(at + 4) > 0) count++;
    }
    return count;
  }

  it("100 writers share one commit, and one bad item fails alone", async () => {
    const store = await place.open();
    const runs = await Promise.all(Array.from({ length: 100 }, () => held(store)));
    const before = commits();
    const verdicts = await store.fenced.appendAll(
      runs.map((run, k) => [k === 37 ? forged(run, { nonce: 9n }) : run.fence, { after: 1, records: [step(0)] }]),
    );
    expect(commits() - before).toBe(1);
    expect(verdicts.filter((verdict) => verdict.ok)).toHaveLength(99);
    expect(verdicts[37]).toMatchObject({ ok: false, error: { code: "TAPE_FENCED" } });
  });

  it("writes of every kind share a commit; one that fails midway is rolled back alone", async () => {
    const store = await place.open();
    const [one, two] = await Promise.all([held(store), held(store)]);
    const before = commits();
    const gate = record("gate.opened", { pos: 1, name: "g" });
    const codes = await Promise.all(
      [
        store.fenced.append(one!.fence, { after: 1, records: [step(0), gate] }),
        store.fenced.append(two!.fence, { after: 1, records: [gate, gate] }), // the second gate is one too many
        store.intake.putValue(tenant, "k", 1, "must_create"),
        store.intake.signal(tenant, one!.id, { name: "s", value: 1 }),
        store.intake.putValue(tenant, "k", 2, "must_create"),
      ].map(codeOf),
    );
    expect(codes).toEqual(["done", "TAPE_ILLEGAL_TRANSITION", "done", "done", "TAPE_VERSION_CONFLICT"]);
    expect(commits() - before).toBe(1);
    expect(await lengths(store, [one!, two!])).toEqual([3, 1]);
  });

  it("sequential writes are committed one after the other, at once", async () => {
    const store = await place.open();
    const run = await held(store);
    const before = commits();
    for (let k = 0; k < 5; k++) await store.fenced.append(run.fence, { after: 1 + k, records: [step(k)] });
    expect(commits() - before).toBe(5);
  });

  it.each([
    ["items", { pendingItems: 10 }, 15, 10],
    ["bytes", { pendingBytes: 20_000 }, 30, 20],
  ] as const)(
    "a queue full of %s rejects the rest, and takes more once it is written",
    async (_, limits, count, fit) => {
      const store = await place.open({ limits });
      const runs: Awaited<ReturnType<typeof held>>[] = [];
      for (let k = 0; k < count; k++) runs.push(await held(store));
      const text = "x".repeat(920); // with its frame nearly a thousandth of a megabyte
      const write = () =>
        store.fenced.appendAll(runs.map((run) => [run.fence, { after: 1, records: [step(0, text)] }]));
      const verdicts = await write();
      const refused = verdicts.filter((verdict) => !verdict.ok);
      expect(verdicts.length - refused.length).toBe(fit);
      for (const verdict of refused) expect(verdict).toMatchObject({ error: { code: "TAPE_OVERLOADED" } });
      const later = await Promise.all(
        runs.slice(fit).map((run) => codeOf(store.fenced.append(run.fence, { after: 1, records: [step(0)] }))),
      );
      expect(later).toEqual(runs.slice(fit).map(() => "done"));
    },
  );
});
