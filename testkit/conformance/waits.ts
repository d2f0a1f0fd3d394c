import { strict as assert } from "node:assert";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { checkProjection } from "../projection.ts";
import { type Cases, claimant, record, refused, spec, tenant, unique } from "./frame.ts";
import { begin, countOutcomes, decided, find, statusOf, unchanged } from "./holder.ts";

type Resolution = "RECEIVED" | "TIMED_OUT" | "WITHDRAWN";
const gate = (pos: number, more: { payload?: unknown; binds?: string; timeoutMs?: number } = {}): NewRecord =>
  record("gate.opened", { pos, name: "approve", ...more });
const resolved = (pos: number, to: Resolution, value?: unknown): NewRecord =>
  record("gate.resolved", { pos, to, ...(value === undefined ? {} : { value }) });
const timer = (pos: number, inMs: number, purpose: "sleep" | "redrive" | "reconcile" = "sleep"): NewRecord =>
  record("timer.set", { pos, purpose, delayMs: inMs });
const cancelled = (pos: number, purpose = "sleep"): NewRecord => record("timer.cancelled", { pos, purpose });

/** Due before any case ends, also on a store with real time. */
const soon = 20;
const pastSoon = 50;
/** Due after every case has ended. */
export const far = 3_600_000;

export const gates: Cases = ({ it }, fresh) => {
  it("an open gate shows its payload, and is resolved once, in one of three ways", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(gate(0, { payload: { amount: 5n }, binds: "hash" }), gate(1), gate(2));
    const [first] = await store.read.gates(tenant, { run: run.id });
    assert.deepEqual([first?.name, first?.status, first?.binds, first?.value], ["approve", "OPEN", "hash", null]);
    assert.ok(first?.payload?.includes("5"));
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", gate(0)));
    const ways = ["RECEIVED", "TIMED_OUT", "WITHDRAWN"] as const;
    for (const [pos, to] of ways.entries()) await run.write(resolved(pos, to, { by: "ann" }));
    const rows = await store.read.gates(tenant, { run: run.id });
    assert.deepEqual(
      rows.map(({ status }) => status),
      ways,
    );
    await unchanged(store, async () => {
      for (const pos of [0, 1, 2]) {
        for (const to of ways) await run.refused("TAPE_ILLEGAL_TRANSITION", resolved(pos, to));
        await run.refused("TAPE_ILLEGAL_TRANSITION", gate(pos));
      }
      await run.refused("TAPE_ILLEGAL_TRANSITION", resolved(7, "RECEIVED"));
    });
  });

  it("a gate accepts only its approvers' signals, and refuses others without a write", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const approvers = { role: "operator", tokens: ["t-cfo"], by: ["ada"] } as const;
    await run.write(
      record("gate.opened", { pos: 0, name: "cfo", approvers: { ...approvers, tokens: ["t-cfo"], by: ["ada"] } }),
    );
    const [row] = await store.read.gates(tenant, { run: run.id });
    assert.deepEqual(JSON.parse(row!.approvers!), approvers);
    const via = (token: string, role: string) => ({ via: { token, name: token, role } });
    const send = (who: object) => store.intake.signal(tenant, run.id, { name: "cfo", value: true, ...who });
    await unchanged(store, async () => {
      await refused("TAPE_NOT_APPROVER", send(via("t-cfo", "starter")));
      await refused("TAPE_NOT_APPROVER", send(via("t-other", "admin")));
      await refused("TAPE_NOT_APPROVER", send({ by: "bob" }));
      await refused("TAPE_NOT_APPROVER", send({}));
    });
    await store.intake.signal(tenant, run.id, { name: "other", value: 1 });
    const answer = (note: number | undefined) =>
      record("gate.resolved", { pos: 0, to: "RECEIVED", value: true, ...(note === undefined ? {} : { note }) });
    await unchanged(store, async () => {
      await run.refused("TAPE_ILLEGAL_TRANSITION", answer(1));
      await run.refused("TAPE_ILLEGAL_TRANSITION", answer(undefined));
    });
    const { n } = await send(via("t-cfo", "operator"));
    const [, note] = await store.read.journal(tenant, { run: run.id }, { inbox: true });
    assert.deepEqual((note!.data as { approves?: unknown }).approves, [0]);
    await run.write(answer(n));
    assert.equal((await send({})).duplicate, false, "no gate of that name stands open any more");
  });

  it("an answer that must match is refused without a write unless the gate binds it", async () => {
    const { store, another } = fresh();
    const run = await begin(store);
    const send = (more: object, by: Store = store) =>
      by.intake.signal(tenant, run.id, { name: "cfo", value: true, mustMatch: true, ...more });
    await unchanged(store, async () => {
      await refused("TAPE_GATE_STALE", send({ binds: "a" }));
      await refused("TAPE_GATE_STALE", send({}));
      await refused("TAPE_BAD_INPUT", send({ mustMatch: false }));
    });
    await run.write(record("gate.opened", { pos: 0, name: "cfo", binds: "a" }));
    await unchanged(store, async () => {
      await refused("TAPE_GATE_STALE", send({ binds: "b", key: "k" }));
      await refused("TAPE_GATE_STALE", send({}));
    });
    const clients = [store, await another()];
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, k) =>
        send({ binds: "a", key: `k-${k}` }, clients[k % 2]!).then(
          ({ n }) => [n, k] as const,
          (error: { code?: string }) => error.code!,
        ),
      ),
    );
    const [first] = answers.filter((answer) => typeof answer !== "string");
    assert.deepEqual(countOutcomes(answers.map((one) => (typeof one === "string" ? one : "sent"))), {
      ...{ sent: 1, TAPE_GATE_STALE: 5 },
    });
    const [n, k] = first as readonly [number, number];
    assert.deepEqual(await send({ binds: "a", key: `k-${k}` }), { n, duplicate: true });
    // The refused value leaves the gate open, for another answer.
    await run.write(record("signal.refused", { name: "cfo", note: n, reason: "not a number" }));
    const { n: next } = await send({ binds: "a" });
    await unchanged(store, () => refused("TAPE_GATE_STALE", send({ binds: "a" })));
    await run.write(record("gate.resolved", { pos: 0, to: "RECEIVED", value: true, note: next }));
    await unchanged(store, () => refused("TAPE_GATE_STALE", send({ binds: "a" })));
    assert.equal((await store.read.journal(tenant, { run: run.id }, { inbox: true })).length, 2);
    assert.deepEqual(await checkProjection(store, [tenant]), []);
  });

  it("a four-eyes gate refuses the starter of the run or of its parent", async () => {
    const { store } = fresh();
    const id = unique("run");
    const starters = ["token:t-1", "name:ada"];
    const first = { ...claimant(), nonce: 11n };
    const [made] = await store.intake.createRuns(tenant, [spec({ id, starters })], first);
    assert.ok(made?.ok && made.term);
    const opened = record("gate.opened", { pos: 0, name: "cfo", approvers: { not: "starter" } });
    const child = record("child.started", { pos: 1, id: `${id}.1`, workflow: "w", input: 1, inputHash: "h" });
    await store.fenced.append(made.term.fence, { after: 1, records: [opened, child] });
    const request = { target: { run: `${id}.1` }, claimant: claimant(), nonce: 12n, expect: "free" } as const;
    const held = await store.claim.acquire(tenant, request);
    assert.ok(held.ok);
    await store.fenced.append(held.term.fence, { after: held.term.head, records: [opened] });
    const send = (run: string, who: object) => store.intake.signal(tenant, run, { name: "cfo", value: true, ...who });
    const via = (token: string, role = "starter") => ({ via: { token, name: "n", role } });
    for (const run of [id, `${id}.1`]) {
      await unchanged(store, async () => {
        await refused("TAPE_SELF_APPROVAL", send(run, via("t-1")));
        await refused("TAPE_SELF_APPROVAL", send(run, via("t-1", "admin")));
        await refused("TAPE_SELF_APPROVAL", send(run, { by: "ada" }));
        await refused("TAPE_NOT_APPROVER", send(run, {}));
      });
      await send(run, via("t-2"));
      await send(run, { by: "bob" });
    }
    // The starter of this run is unknown: it takes an operator.
    const other = await begin(store);
    await other.write(opened);
    await refused("TAPE_NOT_APPROVER", send(other.id, via("t-2")));
    await send(other.id, via("t-2", "operator"));
  });

  it("the token that started a run cannot approve its bound call, unless the gate allows it", async () => {
    const { store } = fresh();
    const id = unique("run");
    const first = { ...claimant(), nonce: 21n };
    const [made] = await store.intake.createRuns(tenant, [spec({ id, starters: ["token:t-1", "name:ada"] })], first);
    assert.ok(made?.ok && made.term);
    const send = (name: string, more: object) => store.intake.signal(tenant, id, { name, value: true, ...more });
    const via = (token: string) => ({ via: { token, name: "n", role: "admin" } });
    await unchanged(store, async () => {
      await refused("TAPE_SELF_APPROVAL", send("cfo", { binds: "a", ...via("t-1") }));
      // A start sends its signals as the starter.
      const again = spec({
        id,
        starters: ["token:t-1"],
        signals: [{ name: "cfo", value: 1, key: "k", binds: "a", ...via("t-1") }],
      });
      const [start] = await store.intake.createRuns(tenant, [again]);
      assert.equal(start?.ok === false && start.error.code, "TAPE_SELF_APPROVAL");
    });
    const open = (pos: number, name: string, more: object = {}) => record("gate.opened", { pos, name, ...more });
    await store.fenced.append(made.term.fence, {
      after: 1,
      records: [
        open(0, "cfo", { binds: "a" }),
        open(1, "own", { binds: "b", approvers: { self: true } }),
        open(2, "chat"),
      ],
    });
    await unchanged(store, async () => {
      await refused("TAPE_SELF_APPROVAL", send("cfo", { binds: "a", mustMatch: true, ...via("t-1") }));
      await refused("TAPE_SELF_APPROVAL", send("cfo", via("t-1")));
    });
    const approvals = async () => {
      const notes = await store.read.journal(tenant, { run: id }, { inbox: true });
      return notes.map(({ data }) => (data as { approves?: unknown }).approves);
    };
    await send("cfo", via("t-2"));
    await send("own", { binds: "b", ...via("t-1") });
    await send("chat", via("t-1"));
    await send("cfo", { by: "ada" }); // an embedded program has no token, and a name proves nothing
    assert.deepEqual(await approvals(), [[0], [1], undefined, undefined]);
  });

  it("open gates are listed oldest first, of one run or of the tenant", async () => {
    const { store, elapse } = fresh();
    const [a, b] = [await begin(store), await begin(store)];
    await a.write(gate(0));
    await elapse(5);
    await b.write(gate(5));
    await elapse(5);
    await a.write(gate(3));
    const places = async (filter: { run?: string; open?: boolean; limit?: number }) =>
      (await store.read.gates(tenant, filter)).map(({ run, pos }) => `${run === a.journal ? "a" : "b"}${pos}`);
    assert.deepEqual(await places({}), ["a0", "b5", "a3"]);
    assert.deepEqual(await places({ limit: 2 }), ["a0", "b5"]);
    await a.write(resolved(0, "RECEIVED"));
    assert.deepEqual(await places({ open: true }), ["b5", "a3"]);
    assert.deepEqual(await places({ open: true, run: a.id }), ["a3"]);
    assert.deepEqual(await places({ run: "nobody" }), []);
    assert.deepEqual(await store.read.gates("globex"), []);
  });

  it("a gate's timeout is a timer, cancelled by an answer and fired without one", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    await run.write(gate(0, { timeoutMs: soon }), gate(1, { timeoutMs: soon }));
    await run.write(resolved(0, "RECEIVED"));
    await elapse(pastSoon);
    const of = { run: run.journal, purpose: "gate_timeout" };
    assert.equal(await store.intake.fireTimer(tenant, { ...of, pos: 0 }), false);
    assert.equal(await store.intake.fireTimer(tenant, { ...of, pos: 1 }), true);
    const rows = await store.read.timers(tenant, { run: run.id });
    assert.deepEqual(rows.map(({ pos, status }) => `${pos} ${status}`).sort(), ["0 CANCELLED", "1 FIRED"]);
    // The gate itself is still open: the run's holder decides what the note means.
    assert.equal((await store.read.gates(tenant, { open: true })).length, 1);
    await run.write(record("notes.taken", { through: 1 }), resolved(1, "TIMED_OUT"));
  });
};

export const timers: Cases = ({ it }, fresh) => {
  it("a timer fires when due, never early, with its note in the same transaction", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    await run.write(timer(0, soon), timer(1, far), timer(0, far, "redrive"));
    const of = { run: run.journal, pos: 0, purpose: "sleep" };
    await run.release();
    await unchanged(store, async () => {
      assert.equal(await store.intake.fireTimer(tenant, { ...of, pos: 1 }), false, "early");
      assert.equal(await store.intake.fireTimer(tenant, { ...of, purpose: "redrive" }), false, "early");
      assert.equal(await store.intake.fireTimer(tenant, { ...of, pos: 9 }), false, "there is none");
      assert.equal(await store.intake.fireTimer(tenant, { ...of, run: run.journal + 1 }), false, "there is none");
    });
    await elapse(pastSoon);
    assert.equal(await statusOf(store, run.id), "WAITING", "nothing fires without a call");
    assert.equal(await store.intake.fireTimer(tenant, of), true);
    assert.equal(await statusOf(store, run.id), "RUNNABLE");
    const [note, ...rest] = await store.read.journal(tenant, { run: run.id }, { inbox: true });
    assert.deepEqual([note?.kind, note?.data, rest.length], ["timer.fired", { pos: 0, purpose: "sleep" }, 0]);
    await unchanged(store, async () => assert.equal(await store.intake.fireTimer(tenant, of), false, "once"));
    assert.equal((await find(store, "recovery")).length, 1);
  });

  it("of many concurrent callers exactly one fires a timer", async () => {
    const { store, another, elapse } = fresh();
    const clients = [store, await another()];
    const run = await begin(store);
    await run.write(...Array.from({ length: 10 }, (_, pos) => timer(pos, soon)));
    await elapse(pastSoon);
    for (let pos = 0; pos < 10; pos++) {
      const calls = Array.from({ length: 8 }, (_, k) =>
        clients[k % 2]!.intake.fireTimer(tenant, { run: run.journal, pos, purpose: "sleep" }),
      );
      assert.deepEqual(countOutcomes(await Promise.all(calls)), { true: 1, false: 7 });
    }
    assert.equal((await run.view()).notes, 10);
  });

  it("a timer is cancelled or fired, never both", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    await run.write(timer(0, soon), timer(1, soon), cancelled(0));
    await unchanged(store, async () => {
      await run.refused("TAPE_ILLEGAL_TRANSITION", cancelled(0));
      await run.refused("TAPE_ILLEGAL_TRANSITION", cancelled(1, "redrive"));
      await run.refused("TAPE_ILLEGAL_TRANSITION", timer(0, far));
    });
    await elapse(pastSoon);
    const of = { run: run.journal, purpose: "sleep" };
    assert.equal(await store.intake.fireTimer(tenant, { ...of, pos: 0 }), false);
    assert.equal(await store.intake.fireTimer(tenant, { ...of, pos: 1 }), true);
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", cancelled(1)));
    await run.write(timer(2, 0), decided("cancelled"));
    assert.equal(
      await store.intake.fireTimer(tenant, { ...of, pos: 2 }),
      false,
      "a decided run's timers are cancelled",
    );
  });

  it("when cancelling races firing, exactly one of them happens", async () => {
    const { store, another, elapse } = fresh();
    const other = await another();
    const runs = await Promise.all(Array.from({ length: 20 }, () => begin(store)));
    await Promise.all(runs.map((run) => run.write(timer(0, soon))));
    await elapse(pastSoon);
    await Promise.all(
      runs.map(async (run, k) => {
        const cancel = () => run.write(cancelled(0)).then(() => true, refusedAsSettled);
        const fire = () => other.intake.fireTimer(tenant, { run: run.journal, pos: 0, purpose: "sleep" });
        const race = await Promise.all(k % 2 === 0 ? [cancel(), fire()] : [fire(), cancel()]);
        assert.deepEqual(countOutcomes(race), { true: 1, false: 1 });
        const [row] = await store.read.timers(tenant, { run: run.id });
        assert.equal((await run.view()).notes, row?.status === "FIRED" ? 1 : 0);
      }),
    );
  });

  it("due timers are listed oldest first, and the agenda shows when the next is due", async () => {
    const { store, elapse } = fresh();
    assert.equal(await nextTimerMs(store), undefined);
    const run = await begin(store);
    await run.write(timer(0, far));
    const next = await nextTimerMs(store);
    assert.ok(next !== undefined && next > far / 2 && next <= far);
    assert.deepEqual(await store.read.dueTimers(10), []);
    // Far enough apart that the time between two statements of one transaction does not reverse their order.
    await run.write(timer(1, 300), timer(2, 5), timer(3, 150, "reconcile"));
    await elapse(350);
    const due = await store.read.dueTimers(10);
    assert.deepEqual(
      due.map(({ pos, purpose, status }) => `${pos} ${purpose} ${status}`),
      ["2 sleep SET", "3 reconcile SET", "1 sleep SET"],
    );
    for (const { lateMs, tenant: of, run: journal } of due) {
      assert.ok(lateMs >= 0 && lateMs < far);
      assert.deepEqual([of, journal], [tenant, run.journal]);
    }
    assert.equal((await store.read.dueTimers(2)).length, 2);
    assert.equal((await store.read.dueTimers(10, tenant)).length, 3);
    assert.deepEqual(await store.read.dueTimers(10, "globex"), []);
    assert.equal(await nextTimerMs(store, "globex"), undefined);
    assert.equal(await nextTimerMs(store), 0);
    for (const { pos, purpose } of due) await store.intake.fireTimer(tenant, { run: run.journal, pos, purpose });
    assert.deepEqual(await store.read.dueTimers(10), []);
    assert.ok(((await nextTimerMs(store)) ?? 0) > far / 2);
    const rows = await store.read.timers(tenant, { run: run.id });
    assert.equal(rows.length, 4);
    assert.equal((await store.read.timers(tenant, { limit: 3 })).length, 3);
    assert.deepEqual(await store.read.timers("globex"), []);
  });
};

/** Milliseconds until the next timer or schedule; undefined: none is set. */
export async function nextTimerMs(store: Store, of?: string): Promise<number | undefined> {
  return (await store.read.agenda(of)).find(({ reactor }) => reactor === "timers")?.dueInMs;
}

function refusedAsSettled(error: { code?: string }): boolean {
  assert.equal(error.code, "TAPE_ILLEGAL_TRANSITION");
  return false;
}
