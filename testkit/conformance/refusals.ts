import { strict as assert } from "node:assert";
import { type ErrorCode, TapeError } from "../../src/model/errors.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import {
  bigintText,
  type Cases,
  claimant,
  nonce,
  record,
  refused,
  request,
  scheduleSpec,
  spec,
  step,
  tenant,
} from "./frame.ts";
import { begin, dispatched, type Holder, intent, settled, unchanged } from "./holder.ts";
import { findRequest } from "./lease-fixtures.ts";

/** A caller in JavaScript: the value does not have its declared type. */
const lie = <T>(value: unknown): T => value as T;

/** Not text, or text that no store can hold. */
const badNames: readonly (readonly [unknown, ErrorCode])[] = [
  ["", "TAPE_BAD_INPUT"],
  ["x".repeat(513), "TAPE_TOO_LARGE"],
  ["a\0b", "TAPE_BAD_INPUT"],
  ["\ud800", "TAPE_BAD_INPUT"],
  [5, "TAPE_BAD_INPUT"],
  [null, "TAPE_BAD_INPUT"],
  [undefined, "TAPE_BAD_INPUT"],
  [{}, "TAPE_BAD_INPUT"],
  [["a"], "TAPE_BAD_INPUT"],
];
const badWholes: readonly unknown[] = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "1", 1n, null, {}];
const notObjects: readonly unknown[] = [undefined, null, 5, "text", true];

/** Asserts that each call is refused with this code, and names the one that was not. */
async function allRefused(code: ErrorCode, calls: Readonly<Record<string, () => unknown>>): Promise<void> {
  for (const [what, call] of Object.entries(calls)) {
    let outcome: unknown;
    try {
      outcome = await call();
      const verdict = Array.isArray(outcome)
        ? (outcome[0] as { ok?: boolean; error?: unknown } | undefined)
        : undefined;
      if (verdict?.ok === false) outcome = verdict.error;
    } catch (error) {
      outcome = error;
    }
    const found = outcome instanceof TapeError ? outcome.code : outcome instanceof Error ? outcome.stack : outcome;
    assert.equal(found, code, `${what}: ${JSON.stringify(found, bigintText)}`);
  }
}

const spread = (what: string, values: readonly unknown[], call: (value: never) => unknown) =>
  Object.fromEntries(values.map((value, k) => [`${what} ${k}: ${String(value)}`, () => call(lie(value))]));

/** Every call that takes a name, once for each of its names. */
function namedCalls(store: Store, run: Holder, name: string): Record<string, () => unknown> {
  const { intake, claim, read } = store;
  const first = { ...claimant(), nonce: nonce() };
  const row = { id: "s", spec: scheduleSpec(), nextAt: null, paused: false };
  const put = (one: NewRecord) => store.fenced.append(run.term.fence, { after: 1, records: [one] });
  return {
    "createRuns tenant": () => intake.createRuns(name, [spec()]),
    "createRuns id": () => intake.createRuns(tenant, [spec({ id: name })]),
    "createRuns workflow": () => intake.createRuns(tenant, [spec({ workflow: name })]),
    "createRuns label": () => intake.createRuns(tenant, [spec({ labels: { [lie<string>(name)]: "v" } })]),
    "createRuns unit": () => intake.createRuns(tenant, [spec({ budget: { [lie<string>(name)]: 5 } })]),
    "createRuns owner": () => intake.createRuns(tenant, [spec()], { ...first, owner: name }),
    "createRuns reactor": () => intake.createRuns(tenant, [spec()], { ...first, reactor: name }),
    "signal tenant": () => intake.signal(name, run.id, { name: "s", value: 1 }),
    "signal run": () => intake.signal(tenant, name, { name: "s", value: 1 }),
    "signal name": () => intake.signal(tenant, run.id, { name, value: 1 }),
    "cancel run": () => intake.cancel(tenant, name, { reason: "r" }),
    "fireTimer purpose": () => intake.fireTimer(tenant, { run: run.journal, pos: 0, purpose: name }),
    "putValue tenant": () => intake.putValue(name, "k", 1, "must_create"),
    "putValue key": () => intake.putValue(tenant, name, 1, "must_create"),
    "deleteValue key": () => intake.deleteValue(tenant, name, 1),
    "putSchedule tenant": () => intake.putSchedule(name, row),
    "putSchedule id": () => intake.putSchedule(tenant, { ...row, id: name }),
    "deleteSchedule tenant": () => intake.deleteSchedule(name, "s"),
    "deleteSchedule id": () => intake.deleteSchedule(tenant, name),
    "fireSchedule tenant": () => intake.fireSchedule(name, "s", 1, null, []),
    "fireSchedule id": () => intake.fireSchedule(tenant, name, 1, null, []),
    "prune tenant": () => intake.prune(name, 5, 1),
    "report tenant": () => intake.reportProcess(name, { owner: "o", label: "l", body: {} }),
    "report owner": () => intake.reportProcess(tenant, { owner: name, label: "l", body: {} }),
    "report label": () => intake.reportProcess(tenant, { owner: "o", label: name, body: {} }),
    "removeProcess tenant": () => intake.removeProcess(name, "o"),
    "removeProcess owner": () => intake.removeProcess(tenant, name),
    "acquire tenant": () => claim.acquire(name, request({ run: run.id })),
    "acquire run": () => claim.acquire(tenant, request({ run: name })),
    "acquire name": () => claim.acquire(tenant, request({ name })),
    "acquire by": () => claim.acquire(tenant, request({ run: run.id }, { expect: "any", by: name, auditReason: "w" })),
    "find wants": () => claim.find({ claimant: claimant(), nextReactor: name, staleOf: [], limit: 1, nonce: nonce() }),
    "find workflows": () => claim.find({ ...findRequest(), workflows: [name] }),
    "unserved workflows": () => read.unserved([name], 0),
    "find staleOf": () =>
      claim.find({ claimant: claimant(), nextReactor: "w", staleOf: [name], limit: 1, nonce: nonce() }),
    "pause name": () => claim.pause(tenant, name, true, "ann", "why"),
    "pause by": () => claim.pause(tenant, "n", true, name, "why"),
    restored: () => claim.restored(name),
    "append name": () => put(record("step.done", { pos: 0, name })),
    "append effect name": () => put(intent(0, { name })),
    "append effect key": () => put(intent(0, { key: name })),
    "append argsHash": () => put(intent(0, { argsHash: name })),
    "append gate": () => put(record("gate.opened", { pos: 0, name })),
    "append value key": () => put(record("value.written", { key: name, version: 1, value: 1 })),
    "append child id": () =>
      put(record("child.started", { pos: 0, id: name, workflow: "w", input: 1, inputHash: "h" })),
    "append child hash": () =>
      put(record("child.started", { pos: 0, id: "c", workflow: "w", input: 1, inputHash: name })),
    "append timer purpose": () => put(record("timer.cancelled", { pos: 0, purpose: name })),
    "append reason": () => put(settled(0, "FAILED", { reason: name })),
    "read run tenant": () => read.run(name, "r"),
    "read run id": () => read.run(tenant, name),
    "read runs": () => read.runs(name),
    "read journal": () => read.journal(tenant, { run: name }),
    "read effects": () => read.effects(name),
    "read gates": () => read.gates(name),
    "read timers": () => read.timers(name),
    "read schedules": () => read.schedules(name),
    "read budgets": () => read.budgets(tenant, name),
    "read businessKeyOwner": () => read.businessKeyOwner(tenant, "s", name),
    "read value": () => read.value(tenant, name),
    "read values tenant": () => read.values(name, ""),
    "read history": () => read.valueHistory(tenant, name, 0),
    "read lease": () => read.lease(tenant, { name }),
    "read leases": () => read.leases(name),
    "read processes": () => read.processes(name),
    "read terms": () => read.terms(tenant, { run: name }),
  };
}

/** Bad input of every kind: a stable code, and the store unchanged. */
export const refusals: Cases = ({ it }, fresh) => {
  it("every call refuses an invalid name", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const ways = (name: string) => namedCalls(store, run, name);
    // Object keys are always text, so these two cannot have another type.
    const keys = ["createRuns label", "createRuns unit"];
    await unchanged(store, async () => {
      for (const [name, code] of badNames) {
        const calls = Object.entries(ways(lie(name))).filter(
          ([way]) => typeof name === "string" || !keys.includes(way),
        );
        await allRefused(
          code,
          Object.fromEntries(calls.map(([way, call]) => [`${way} ${JSON.stringify(name)?.slice(0, 20)}`, call])),
        );
      }
    });
  });

  it("optional text is checked too", async () => {
    const { store } = fresh();
    const run = await begin(store, { budget: { usd: 5 } });
    const { intake, claim, read } = store;
    const put = (one: NewRecord) => store.fenced.append(run.term.fence, { after: 1, records: [one] });
    const ways = (text: string): Record<string, () => unknown> => ({
      version: () => intake.createRuns(tenant, [spec({ version: text })]),
      "label value": () => intake.createRuns(tenant, [spec({ labels: { a: text } })]),
      schedule: () => intake.createRuns(tenant, [spec({ schedule: text })]),
      "signal key": () => intake.signal(tenant, run.id, { name: "s", value: 1, key: text }),
      "schedule spec": () => intake.putSchedule(tenant, { id: "s", spec: text, nextAt: null, paused: false }),
      connector: () => put(intent(0, { connector: text })),
      "business key": () => put(intent(0, { businessKey: text })),
      binds: () => put(record("gate.opened", { pos: 0, name: "g", binds: text })),
      nextReactor: () => put(record("term.ended", { reason: "released", notesTaken: 0, nextReactor: text })),
      "budget unit": () => put(record("budget.reserved", { pos: 0, rootRun: run.journal, amounts: { [text]: 1 } })),
      "child version": () =>
        put(record("child.started", { pos: 0, id: "c", workflow: "w", input: 1, inputHash: "h", version: text })),
      "child label": () =>
        put(record("child.started", { pos: 0, id: "c", workflow: "w", input: 1, inputHash: "h", labels: { a: text } })),
      "progress note": () => claim.renew([{ fence: run.term.fence, progress: 1, progressNote: text }]),
      "runs workflow": () => read.runs(tenant, { workflow: text }),
      "runs label": () => read.runs(tenant, { label: { key: "a", value: text } }),
      "effects run": () => read.effects(tenant, { run: text }),
      "values prefix": () => read.values(tenant, text),
      "feed tenant": () => read.feed(undefined, 1, text),
    });
    await unchanged(store, async () => {
      for (const bad of ["a\0b", "\udc00", lie<string>(5), lie<string>({})]) {
        const { "budget unit": unit, ...rest } = ways(bad);
        await allRefused("TAPE_BAD_INPUT", rest);
        if (typeof bad === "string") await allRefused("TAPE_BAD_INPUT", { unit: unit! });
      }
    });
  });

  it("a number that is not whole is refused", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const { intake, claim, read } = store;
    const { fence } = run.term;
    const schedule = { id: "s", spec: scheduleSpec(), paused: false };
    const attempt = { run: run.journal, pos: 0, token: 1n, nonce: 1n };
    const ways = (value: number): Record<string, () => unknown> => ({
      after: () => store.fenced.append(fence, { after: value, records: [step(0)] }),
      pos: () => store.fenced.append(fence, { after: 1, records: [step(value)] }),
      journal: () => claim.acquire(tenant, request({ journal: value })),
      ttl: () => claim.acquire(tenant, request({ run: run.id }, { claimant: claimant("o", { ttlMs: value }) })),
      stall: () => claim.acquire(tenant, request({ run: run.id }, { claimant: claimant("o", { maxStallMs: value }) })),
      progress: () => claim.renew([{ fence, progress: value }]),
      "unserved minLagMs": () => read.unserved([], value),
      "find limit": () =>
        claim.find({ claimant: claimant(), nextReactor: "w", staleOf: [], limit: value, nonce: nonce() }),
      budget: () => intake.createRuns(tenant, [spec({ budget: { usd: value } })]),
      version: () => intake.putValue(tenant, "k", 1, { version: value }),
      "delete version": () => intake.deleteValue(tenant, "k", value),
      "timer run": () => intake.fireTimer(tenant, { run: value, pos: 0, purpose: "sleep" }),
      "timer pos": () => intake.fireTimer(tenant, { run: run.journal, pos: value, purpose: "sleep" }),
      "evidence run": () => intake.leaveEvidence(tenant, { ...attempt, run: value }, { happened: true }),
      "evidence pos": () => intake.leaveEvidence(tenant, { ...attempt, pos: value }, { happened: true }),
      "evidence sub": () => intake.leaveEvidence(tenant, { ...attempt, sub: value }, { happened: true }),
      "schedule nextAt": () => intake.putSchedule(tenant, { ...schedule, nextAt: value === null ? lie("x") : value }),
      "fire version": () => intake.fireSchedule(tenant, "s", value, null, []),
      "fire nextAt": () => intake.fireSchedule(tenant, "s", 1, value === null ? lie("x") : value, []),
      "prune limit": () => intake.prune(tenant, 5, value),
      "runs limit": () => read.runs(tenant, { limit: value }),
      "runs before": () => read.runs(tenant, { before: value }),
      "effects limit": () => read.effects(tenant, { limit: value }),
      "effects from": () => read.effects(tenant, { run: run.id, from: value }),
      "effects below": () => read.effects(tenant, { root: run.journal, below: value }),
      "effects age": () => read.effects(tenant, { minAgeMs: value }),
      "gates limit": () => read.gates(tenant, { limit: value }),
      "timers limit": () => read.timers(tenant, { limit: value }),
      "due limit": () => read.dueTimers(value),
      "due schedules": () => read.dueSchedules(value),
      "journal from": () => read.journal(tenant, { run: run.id }, { from: value }),
      "journal limit": () => read.journal(tenant, { run: run.id }, { limit: value }),
      "journal number": () => read.journal(tenant, { journal: value }),
      "values limit": () => read.values(tenant, "", value),
      "history after": () => read.valueHistory(tenant, "k", value),
      "lease number": () => read.lease(tenant, { journal: value }),
      "leases limit": () => read.leases(tenant, { limit: value }),
    });
    await unchanged(store, async () => {
      for (const bad of badWholes) await allRefused("TAPE_BAD_INPUT", ways(lie(bad)));
      await allRefused(
        "TAPE_BAD_INPUT",
        spread("prune time", [Number.NaN, "x", null, {}, 1n], (v) => intake.prune(tenant, v, 1)),
      );
    });
  });

  it("an argument of the wrong shape is refused", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const { intake, claim, read, fenced } = store;
    const { fence } = run.term;
    const attempt = { run: run.journal, pos: 0, token: 1n, nonce: 1n };
    const acquire = request({ run: run.id });
    const calls = {
      ...spread("specs", [...notObjects, {}], (v) => intake.createRuns(tenant, v)),
      ...spread("spec", notObjects, (v) => intake.createRuns(tenant, [v])),
      ...spread("labels", [5, "x", { a: 5 }, { a: null }], (v) => intake.createRuns(tenant, [spec({ labels: v })])),
      ...spread("budget", [5, { usd: -1 }, { usd: "5" }], (v) => intake.createRuns(tenant, [spec({ budget: v })])),
      ...spread("starters", [5, "ann", {}, [5]], (v) => intake.createRuns(tenant, [spec({ starters: v })])),
      ...spread("first", [null, 5, {}], (v) => intake.createRuns(tenant, [spec()], v)),
      ...spread("effects of an item", [-1, "x", [], {}], (v) => read.effects(tenant, { item: v })),
      ...spread("gates that are open", [1, "yes", []], (v) => read.gates(tenant, { open: v })),
      ...spread("leases that are held", [1, "yes", []], (v) => read.leases(tenant, { held: v })),
      ...spread("signal", [...notObjects, {}, { value: 1 }], (v) => intake.signal(tenant, run.id, v)),
      "an approval of the sender's own": () =>
        intake.signal(tenant, run.id, lie({ name: "s", value: 1, approves: [0] })),
      "signal field": () => intake.signal(tenant, run.id, lie({ name: "s", value: 1, extra: 1 })),
      ...spread("cancel", [...notObjects, {}, { reason: 5 }], (v) => intake.cancel(tenant, run.id, v)),
      ...spread("attempt", notObjects, (v) => intake.leaveEvidence(tenant, v, { happened: true })),
      ...spread("attempt token", [1, "1", -1n, 2n ** 63n, undefined], (v) =>
        intake.leaveEvidence(tenant, { ...attempt, token: v }, { happened: true }),
      ),
      ...spread(
        "evidence",
        [...notObjects, {}, { happened: 1 }, { happened: true, extra: 1 }, { happened: true, run: 9 }],
        (v) => intake.leaveEvidence(tenant, attempt, v),
      ),
      ...spread("timer", notObjects, (v) => intake.fireTimer(tenant, v)),
      ...spread("when", ["never", 5, null, undefined, {}, { version: "1" }], (v) => intake.putValue(tenant, "k", 1, v)),
      ...spread("schedule", [...notObjects, {}], (v) => intake.putSchedule(tenant, v)),
      ...spread("schedule spec", [5, undefined, {}], (v) =>
        intake.putSchedule(tenant, { id: "s", spec: v, nextAt: null, paused: false }),
      ),
      ...spread("schedule paused", [0, "no", undefined], (v) =>
        intake.putSchedule(tenant, { id: "s", spec: scheduleSpec(), nextAt: null, paused: v }),
      ),
      ...spread("firing's runs", [...notObjects, {}, [null]], (v) => intake.fireSchedule(tenant, "s", 1, null, v)),
      ...spread("request", notObjects, (v) => claim.acquire(tenant, v)),
      ...spread("target", [...notObjects, {}, { run: "a", name: "b" }, { id: "a" }], (v) =>
        claim.acquire(tenant, request(v)),
      ),
      ...spread("claimant", [...notObjects, {}], (v) => claim.acquire(tenant, { ...acquire, claimant: v })),
      ...spread("nonce", [1, "1", -1n, 2n ** 63n, undefined], (v) => claim.acquire(tenant, { ...acquire, nonce: v })),
      ...spread("expect", ["never", 5, null, {}, { owner: "o", token: 1 }, { owner: 5, token: 1n }], (v) =>
        claim.acquire(tenant, { ...acquire, expect: v }),
      ),
      ...spread("reason", ["because", 5], (v) => claim.acquire(tenant, { ...acquire, reason: v })),
      ...spread("find", notObjects, (v) => claim.find(v)),
      ...spread("find workflows", [null, "w", 5, [5]], (v) => claim.find({ ...findRequest(), workflows: v })),
      ...spread("unserved workflows", [null, undefined, "w", [5]], (v) => read.unserved(v, 0)),
      ...spread("staleOf", [undefined, "agent", 5], (v) =>
        claim.find({ claimant: claimant(), nextReactor: "w", staleOf: v, limit: 1, nonce: nonce() }),
      ),
      ...spread("renewals", [...notObjects, {}], (v) => claim.renew(v)),
      ...spread("renewal", notObjects, (v) => claim.renew([v])),
      ...spread("paused", [1, "yes", undefined], (v) => claim.pause(tenant, "n", v, "ann", "why")),
      ...spread("fence", [...notObjects, {}, { ...fence, token: 1 }, { ...fence, nonce: "1" }], (v) =>
        fenced.append(v, { after: 1, records: [step(0)] }),
      ),
      ...spread("entry", [...notObjects, {}, { after: 1 }, { after: 1, records: {} }], (v) => fenced.append(fence, v)),
      ...spread("batch", [...notObjects, {}], (v) => fenced.appendAll(v)),
      ...spread("batch item", [...notObjects, [], [fence]], (v) => fenced.appendAll([v])),
      ...spread("read target", [...notObjects, {}, { id: "a" }], (v) => read.lease(tenant, v)),
      ...spread("journal target", [...notObjects, {}], (v) => read.journal(tenant, v)),
      ...spread("terms target", [...notObjects, {}], (v) => read.terms(tenant, v)),
      ...spread("runs filter", [null, 5, { status: "RUNNING" }, { label: 5 }], (v) => read.runs(tenant, v)),
      ...spread("effects filter", [null, 5, { status: "STUCK" }], (v) => read.effects(tenant, v)),
      ...spread("gates filter", [null, 5], (v) => read.gates(tenant, v)),
      ...spread("timers filter", [null, 5], (v) => read.timers(tenant, v)),
      ...spread("leases filter", [null, 5], (v) => read.leases(tenant, v)),
    };
    await unchanged(store, () => allRefused("TAPE_BAD_INPUT", calls));
  });

  it("[INV-5] a record of the wrong shape is rejected with the whole append", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const put = (...records: unknown[]) => store.fenced.append(run.term.fence, { after: 1, records: lie(records) });
    const calls = {
      empty: () => put(),
      ...spread("record", [...notObjects, {}, { kind: "step.done" }, { data: {} }], (v) => put(v)),
      ...spread("kind", ["step.undone", "__proto__", "constructor", 5, null], (v) => put({ kind: v, data: {} })),
      "a kind that has no text": () => put({ kind: Object.create(null), data: {} }),
      "unknown field": () => put({ kind: "step.done", data: { pos: 0, name: "s", colour: "red" } }),
      "missing field": () => put({ kind: "step.done", data: { name: "s" } }),
      "wrong type": () => put({ kind: "step.done", data: { pos: "0", name: "s" } }),
      "wrong word": () => put(settled(0, lie("DONE"))),
      "negative pos": () => put(step(-1)),
      "negative time": () => put(dispatched(0, { sendWithinMs: -1 })),
      "sub of an effect": () =>
        put(record("obligation.settled", { pos: 0, sub: 0, to: "PENDING", reason: "not_sent" })),
      "token as a number": () =>
        put({ kind: "effect.evidence", data: { pos: 0, attempt: 1, token: 1, happened: true } }),
      "after the end of the term": () => put(record("term.ended", { reason: "released", notesTaken: 0 }), step(0)),
      "after the end of the run": () =>
        put(record("run.ended", { status: "FAILED", notesTaken: 0, outcome: 1 }), step(0)),
      "good ones around it": () => put(step(0), { kind: "step.done", data: {} }, step(1)),
    };
    await unchanged(store, async () => {
      await allRefused("TAPE_BAD_INPUT", calls);
      const { appendRecords, journalRecords, batchItems } = store.limits;
      const many = Array.from({ length: appendRecords + 1 }, () => step(0));
      const records = await refused("TAPE_TOO_LARGE", put(...many));
      assert.equal(records.details.limit, "appendRecords");
      const late = store.fenced.append(run.term.fence, { after: journalRecords, records: [step(0)] });
      assert.equal((await refused("TAPE_TOO_LARGE", late)).details.limit, "journalRecords");
      const crowd = Array.from({ length: batchItems + 1 }, () => spec({ id: "one" }));
      assert.equal(
        (await refused("TAPE_TOO_LARGE", store.intake.createRuns(tenant, crowd))).details.limit,
        "batchItems",
      );
    });
  });

  it("[INV-6] in a batch each bad item fails alone", async () => {
    const { store } = fresh();
    const [a, b] = [await begin(store), await begin(store)];
    const entry = { after: 1, records: [step(0)] };
    const verdicts = await store.fenced.appendAll([
      [a.term.fence, entry],
      lie(null),
      [lie({}), entry],
      [b.term.fence, { after: 1, records: [] }],
      [b.term.fence, entry],
    ]);
    assert.deepEqual(
      verdicts.map((verdict) => (verdict.ok ? verdict.head : verdict.error.code)),
      [2, "TAPE_BAD_INPUT", "TAPE_BAD_INPUT", "TAPE_BAD_INPUT", 2],
    );
    assert.deepEqual(await store.fenced.appendAll([]), []);
    assert.deepEqual(await store.intake.createRuns(tenant, []), []);
    assert.deepEqual(await store.claim.renew([]), []);
  });
};
