import { strict as assert } from "node:assert";
import { runIdSuffixLength } from "../../src/model/schedule.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Cases, claimant, nonce, record, refused, request, scheduleSpec, spec, step, tenant } from "./frame.ts";
import { begin, dataOf, hold, intent, unchanged, viewOf } from "./holder.ts";

const nested = (depth: number): unknown => {
  let value: unknown = "core";
  for (let k = 0; k < depth; k++) value = [value];
  return value;
};

/** Values that users store, and must read back unchanged. */
const storable: Readonly<Record<string, unknown>> = {
  NUL: "a\0b",
  "lone surrogates": ["\ud800", "\udfff x", "\ud83d"],
  "all of the first 128": String.fromCharCode(...Array.from({ length: 128 }, (_, k) => k)),
  "line ends": "a\nb\r\nc\u2028d\u2029e\u0085f",
  emoji: "👩‍👩‍👧‍👦 é e\u0301 \ufeff \uffff",
  "above 2^53": [2n ** 53n + 1n, -(2n ** 70n), 2 ** 53, Number.MAX_VALUE, 5e-324],
  "odd numbers": [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0],
  "an invalid date": new Date(Number.NaN),
  nothing: [undefined, null, "", [], {}],
  containers: {
    at: new Date(1_700_000_000_000),
    map: new Map<unknown, unknown>([
      ["k", new Set([1n, "x"])],
      [{ a: 1 }, new Map()],
    ]),
    bytes: new Uint8Array([0, 255, 128, 10]),
    pattern: /a\/b/giu,
    url: new URL("https://example.com/?q=%00"),
  },
  "an error": { failed: new TypeError("no", { cause: new Error("deeper") }) },
  "keys that look like ours": { $codec: 1, v: 9, data: 1, types: { "": "date" }, kind: "run.ended" },
  "keys of prototypes": JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1, "toString": 2}'),
  "SQL in text": "'; drop table runs; -- \\' \" ` $1 ?1 :journal %s {{x}}",
  "as deep as allowed": nested(190),
};

const circle: { self?: unknown } = {};
circle.self = circle;
class Account {
  readonly balance = 1;
  pay(): void {}
}
const notEncodable: Readonly<Record<string, unknown>> = {
  "a function": () => 1,
  "a function inside": { deep: [{ fn: () => 1 }] },
  "a symbol": Symbol("s"),
  "a symbol key": { [Symbol("s")]: 1 },
  "an instance with methods": new Account(),
  "a promise": Promise.resolve(1),
  "a cycle": circle,
  "nested too deep": nested(500),
};

/** Every call that takes a user's value. */
function entrances(store: Store, run: { id: string; fence: Parameters<Store["fenced"]["append"]>[0] }) {
  const append = (one: ReturnType<typeof step>) => store.fenced.append(run.fence, { after: 1, records: [one] });
  return {
    input: (value: unknown) =>
      store.intake.createRuns(tenant, [spec({ input: value })]).then(([verdict]) => {
        if (verdict?.ok === false) throw verdict.error;
      }),
    step: (value: unknown) => append(step(0, value)),
    args: (value: unknown) => append(intent(0, { args: value })),
    gate: (value: unknown) => append(record("gate.opened", { pos: 0, name: "g", payload: { value } })),
    outcome: (value: unknown) => append(record("run.decided", { cause: "failed", outcome: value })),
    signal: (value: unknown) => store.intake.signal(tenant, run.id, { name: "s", value }),
    value: (value: unknown) => store.intake.putValue(tenant, "k", value, "unconditional"),
    inside: (value: unknown) => append(record("value.written", { key: "k", version: 1, value })),
  };
}

/** Unusual text in ids: it is returned unchanged and collides with no other id. */
const oddIds: readonly string[] = [
  "'",
  '"',
  "\\",
  "%",
  "_",
  "%_",
  "a,b",
  ",",
  "a b",
  " a",
  "a ",
  "\n",
  "\t",
  "😀",
  "é",
  "e\u0301",
  "İ",
  "A",
  "a",
  "'; drop table runs; --",
  "$1",
  ":id",
  "null",
  "0",
  "-1",
  "../../etc",
  "__proto__",
  "constructor",
  "x".repeat(512),
];

const isInvalid = (value: unknown): boolean => value instanceof Date && Number.isNaN(value.getTime());

/** In Node 22, no two invalid dates are equal for `deepStrictEqual`. */
function assertSame(copy: unknown, value: unknown, what: string): void {
  if (isInvalid(value)) assert.ok(isInvalid(copy), what);
  else assert.deepStrictEqual(copy, value, what);
}

export const hostile: Cases = ({ it }, fresh) => {
  it("every storable value is returned unchanged", async () => {
    const { store } = fresh();
    for (const [what, value] of Object.entries(storable)) {
      const runSpec = spec({ input: value });
      const [created] = await store.intake.createRuns(tenant, [runSpec]);
      assert.ok(created?.ok, what);
      await store.intake.signal(tenant, runSpec.id, { name: "s", value });
      await store.intake.putValue(tenant, what, value, "must_create");
      const run = await hold(store, runSpec.id);
      await run.write(step(0, value), record("step.done", { pos: 1, name: "failed", error: value }));
      await run.write(record("value.written", { key: what, version: 2, value }));
      await run.write(record("run.decided", { cause: "failed", outcome: value }));
      const records = await store.read.journal(tenant, { run: runSpec.id });
      const [note] = await store.read.journal(tenant, { run: runSpec.id }, { inbox: true });
      const back = [
        dataOf(records[0], "run.created").input,
        dataOf(records[2], "step.done").value,
        dataOf(records[3], "step.done").error,
        dataOf(note, "signal.sent").value,
        (await store.read.value(tenant, what))?.value,
        (await store.read.valueHistory(tenant, what, 0))[0]?.value,
        (await viewOf(store, runSpec.id)).outcome,
      ];
      for (const [k, copy] of back.entries()) assertSame(copy, value, `${what}, copy ${k}`);
      const [again] = await store.intake.createRuns(tenant, [runSpec]);
      assert.deepEqual(again, { ok: true, journal: created.journal, fresh: false }, `${what}: the same input`);
    }
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  });

  it("a payload of 1 MiB is stored, whatever its characters", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const big = ["x".repeat(2 ** 20), "é".repeat(2 ** 19), new Uint8Array(2 ** 20).fill(255), "\0".repeat(2 ** 17)];
    for (const [k, value] of big.entries()) {
      await run.write(step(k, value));
      const [back] = await store.read.journal(tenant, { run: run.id }, { from: k + 2, limit: 1 });
      assert.deepStrictEqual(dataOf(back, "step.done").value, value);
    }
  });

  it("every call refuses a value that cannot be stored, and writes nothing", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const ways = Object.entries(entrances(store, { id: run.id, fence: run.term.fence }));
    await unchanged(store, async () => {
      for (const [what, value] of Object.entries(notEncodable)) {
        for (const [way, enter] of ways) {
          const { code } = await refused("TAPE_NOT_ENCODABLE", enter(value));
          assert.equal(code, "TAPE_NOT_ENCODABLE", `${what} as ${way}`);
        }
      }
    });
  });

  it("every call refuses a value that is too large, and writes nothing", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const { payloadBytes } = store.limits;
    // Counted in bytes of UTF-8, not in characters.
    const large = ["x".repeat(payloadBytes), "é".repeat(Math.ceil(payloadBytes / 2))];
    await unchanged(store, async () => {
      for (const [way, enter] of Object.entries(entrances(store, { id: run.id, fence: run.term.fence }))) {
        for (const value of large) {
          const { details } = await refused("TAPE_TOO_LARGE", enter(value));
          assert.equal(details.limit, "payloadBytes", way);
        }
      }
    });
  });

  it("ids of any text are distinct and are returned unchanged", async () => {
    const { store } = fresh();
    const labelOf = (id: string): string => (id.length <= store.limits.labelLength ? id : `a long id ${id.length}`);
    const specs = oddIds.map((id, k) =>
      spec({ id, workflow: id, input: k, version: id, labels: { [labelOf(id)]: labelOf(id) } }),
    );
    const verdicts = await store.intake.createRuns(tenant, specs);
    assert.ok(verdicts.every((verdict) => verdict.ok && verdict.fresh));
    // A schedule's id leaves room for the time in its runs' ids.
    const scheduled = oddIds.filter((id) => id.length + runIdSuffixLength <= store.limits.nameLength);
    for (const id of oddIds) {
      const view = await viewOf(store, id);
      assert.deepEqual(
        [view.id, view.workflow, view.version, view.labels],
        [id, id, id, { [labelOf(id)]: labelOf(id) }],
      );
      const byWorkflow = await store.read.runs(tenant, { workflow: id });
      const byLabel = await store.read.runs(tenant, { label: { key: labelOf(id), value: labelOf(id) } });
      assert.deepEqual(
        [byWorkflow, byLabel].map((found) => found.map((one) => one.id)),
        [[id], [id]],
      );
      await store.intake.putValue(tenant, id, id, "must_create");
      if (scheduled.includes(id))
        await store.intake.putSchedule(tenant, { id, spec: scheduleSpec(id), nextAt: null, paused: false });
      assert.equal((await store.intake.signal(tenant, id, { name: id, value: id, key: id })).n, 1);
      assert.equal((await store.intake.signal(tenant, id, { name: id, value: id, key: id })).duplicate, true);
      const named = await store.claim.acquire(tenant, request({ name: id }, { claimant: claimant(id, { label: id }) }));
      assert.ok(named.ok);
      assert.equal((await store.read.lease(tenant, { name: id }))?.name, id);
    }
    assert.deepEqual(new Set((await store.read.values(tenant, "")).map(({ key }) => key)), new Set(oddIds));
    assert.deepEqual(new Set((await store.read.schedules(tenant)).map(({ id }) => id)), new Set(scheduled));
    assert.equal((await store.read.runs(tenant)).length, oddIds.length);
  });

  it("names inside records may be any text", async () => {
    const { store } = fresh();
    const run = await begin(store, { budget: Object.fromEntries(oddIds.map((unit) => [unit, 5])) });
    const records = oddIds.flatMap((id, pos) => [
      intent(pos, { name: id, connector: id, key: id, businessKey: id, argsHash: id }),
      record("gate.opened", { pos, name: id, binds: id, payload: id }),
      record("budget.reserved", { pos, rootRun: run.journal, amounts: { [id]: 3 } }),
    ]);
    await run.write(...records);
    const effects = await store.read.effects(tenant, { run: run.id });
    const gates = await store.read.gates(tenant, { run: run.id });
    for (const [pos, id] of oddIds.entries()) {
      const effect = effects.find((row) => row.pos === pos);
      assert.deepEqual([effect?.name, effect?.connector, effect?.key, effect?.businessKey], [id, id, id, id]);
      const gate = gates.find((row) => row.pos === pos);
      assert.deepEqual([gate?.name, gate?.binds], [id, id]);
      assert.equal((await store.read.businessKeyOwner(tenant, id, id))?.runId, run.id);
    }
    const budgets = await store.read.budgets(tenant, run.id);
    assert.deepEqual(new Set(budgets.map(({ unit }) => unit)), new Set(oddIds));
    assert.ok(budgets.every(({ reserved }) => reserved === 3));
  });

  it("tenants of any name are isolated", async () => {
    const { store } = fresh();
    for (const whose of oddIds) {
      const [created] = await store.intake.createRuns(whose, [spec({ id: "same" })], { ...claimant(), nonce: nonce() });
      assert.ok(created?.ok && created.fresh && created.term?.tenant === whose);
      await store.intake.putValue(whose, "same", whose, "must_create");
    }
    for (const whose of oddIds) {
      assert.deepEqual(
        (await store.read.runs(whose)).map((view) => view.tenant),
        [whose],
      );
      assert.equal((await store.read.value(whose, "same"))?.value, whose);
    }
  });
};
