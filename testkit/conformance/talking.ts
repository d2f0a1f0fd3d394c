import { strict as assert } from "node:assert";
import { callbackToken } from "../../src/model/callback-token.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { RunSpec, StartSignal, Store } from "../../src/store/contract/store.ts";
import { type Cases, claimant, forged, nonce, record, refused, spec, tenant, unique } from "./frame.ts";
import { begin, countOutcomes, ended, find, type Holder, hold, statusOf, unchanged } from "./holder.ts";

const publishes = (pos: number, name: string, value: unknown): NewRecord =>
  record("state.published", { pos, name, value });
const replies = (pos: number, note: number, value: unknown): NewRecord => record("reply.sent", { pos, note, value });
const opened = (pos: number, callback: "json" | "raw" = "json"): NewRecord =>
  record("gate.opened", { pos, name: "paid", callback });
const received = (pos: number, note: number, value: unknown): NewRecord =>
  record("gate.resolved", { pos, to: "RECEIVED", value, note });

const shown = async (store: Store, run: string, name?: string, of = tenant): Promise<unknown[]> =>
  (await store.read.published(of, run, name === undefined ? {} : { name })).map((row) => [
    row.name,
    row.value,
    row.seq,
  ]);

const notesOf = async (store: Store, run: string) =>
  (await store.read.journal(tenant, { run }, { inbox: true })).map(({ data }) => data as { value?: unknown });

async function tokenOf(run: Holder, pos: number): Promise<string> {
  return callbackToken(await run.store.claim.callbackSecret(run.term.fence), { journal: run.journal, pos });
}

export const published: Cases = ({ it }, fresh) => {
  it("readers see the latest value of each name, without a holder and after the end", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const other = await begin(store);
    assert.deepEqual(await shown(store, run.id), []);
    await run.write(publishes(0, "progress", { page: 1 }), publishes(1, "stage", "paid"));
    await run.write(publishes(2, "progress", { page: 17n }));
    const now = [
      ["progress", { page: 17n }, 4],
      ["stage", "paid", 3],
    ];
    assert.deepEqual(await shown(store, run.id), now);
    assert.deepEqual(await shown(store, run.id, "stage"), [now[1]]);
    assert.deepEqual(await shown(store, run.id, "none"), []);
    assert.deepEqual(await shown(store, other.id), []);
    assert.deepEqual(await shown(store, unique("none")), []);
    assert.deepEqual(await shown(store, run.id, undefined, "globex"), [], "another tenant sees nothing");
    const page = await store.read.published(tenant, run.id, { limit: 1 });
    assert.deepEqual([page.map(({ name }) => name), page.more], [["progress"], true]);
    const rest = await store.read.published(tenant, run.id, { above: "progress" });
    assert.deepEqual(
      rest.map(({ name }) => name),
      ["stage"],
    );
    await run.release();
    assert.deepEqual(await shown(store, run.id), now, "no process holds it");
    const again = await hold(store, run.id);
    await again.write(ended("COMPLETED", { outcome: 1, notesTaken: 0 }));
    assert.deepEqual(await shown(store, run.id), now, "it has ended");
  });

  it("a stale holder publishes nothing and answers nothing", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await store.intake.signal(tenant, run.id, { name: "add", value: 1, asks: true });
    await run.write(publishes(0, "progress", "old"), record("notes.taken", { through: 1 }));
    const stale = run.term;
    const head = run.head;
    await run.release(1);
    const next = await hold(store, run.id);
    await unchanged(store, async () => {
      for (const records of [[publishes(1, "progress", "stale")], [replies(1, 1, "stale")]]) {
        await refused("TAPE_FENCED", store.fenced.append(stale.fence, { after: head, records }));
        await refused("TAPE_FENCED", store.fenced.append(stale.fence, { after: next.head, records }));
      }
    });
    assert.deepEqual(await shown(store, run.id), [["progress", "old", 2]]);
    assert.equal(await store.read.reply(tenant, run.id, 1), undefined);
    await next.write(publishes(1, "progress", "new"), replies(2, 1, "new"));
    assert.deepEqual((await shown(store, run.id))[0], ["progress", "new", next.head - 1]);
  });

  it("a run publishes a bounded number of names, and one more is refused without a write", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const { publishedNames } = store.limits;
    await run.write(...Array.from({ length: publishedNames }, (_, k) => publishes(k, `name-${k}`, k)));
    await unchanged(store, () => run.refused("TAPE_TOO_LARGE", publishes(99, "one more", 1)));
    await run.write(publishes(100, "name-0", "again"));
    assert.deepEqual(await shown(store, run.id, "name-0"), [["name-0", "again", run.head]]);
  });

  it("publishing and answering wake readers, and a pruned run shows nothing", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await store.intake.signal(tenant, run.id, { name: "add", value: 1, asks: true });
    const seen = new Set<string>();
    const stop = store.onWake((wake) => {
      if (wake.of === "any" || (wake.of === "published" && wake.journal === run.journal)) seen.add(wake.of);
    });
    await run.write(publishes(0, "progress", 1));
    for (let k = 0; k < 200 && seen.size === 0; k++) await fresh().elapse(5);
    assert.ok(seen.size > 0, "a hint arrives");
    stop();
    await run.write(record("notes.taken", { through: 1 }), replies(1, 1, 2));
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    await store.intake.prune(tenant, Number.MAX_SAFE_INTEGER, 10);
    assert.deepEqual(await shown(store, run.id), []);
    assert.equal(await store.read.reply(tenant, run.id, 1), undefined);
  });
};

export const asks: Cases = ({ it }, fresh) => {
  it("a reply belongs to its note, is sent once, and stays", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const ask = (value: unknown, key: string) =>
      store.intake.signal(tenant, run.id, { name: "add", value, key, asks: true });
    assert.deepEqual(await ask("first", "k-1"), { n: 1, duplicate: false });
    assert.deepEqual(await ask("second", "k-2"), { n: 2, duplicate: false });
    await store.intake.cancel(tenant, run.id, { reason: "stop" });
    assert.equal(await store.read.reply(tenant, run.id, 1), undefined);
    await unchanged(store, async () => {
      await run.refused("TAPE_ILLEGAL_TRANSITION", replies(0, 3, "no signal"));
      await run.refused("TAPE_ILLEGAL_TRANSITION", replies(0, 4, "no note"));
    });
    await run.write(record("notes.taken", { through: 3 }), replies(0, 1, { total: 5n }));
    await run.write(record("reply.sent", { pos: 1, note: 2, error: new Error("no") }));
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", replies(2, 1, "again")));
    const answer = async (n: number) => {
      const { at: _at, ...reply } = (await store.read.reply(tenant, run.id, n))!;
      return reply;
    };
    await run.write(ended("CANCELLED", { outcome: 1, notesTaken: 3 }));
    assert.deepEqual(await ask("late", "k-1"), { n: 1, duplicate: true }, "the same key is the same note");
    assert.deepEqual(await answer(1), { n: 1, value: { total: 5n } });
    assert.match(String(((await answer(2)) as { error: Error }).error.message), /no/);
    await refused("TAPE_RUN_ENDED", ask("late", "k-3"));
    assert.equal(await store.read.reply("globex", run.id, 1), undefined);
    assert.equal(await store.read.reply(tenant, unique("none"), 1), undefined);
  });

  it("the refusal of a request is its reply; that of a signal is none", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await store.intake.signal(tenant, run.id, { name: "add", value: "x", asks: true });
    await store.intake.signal(tenant, run.id, { name: "add", value: "x" });
    await run.write(
      record("signal.refused", { name: "add", note: 1, reason: "not a number", asks: true }),
      record("signal.refused", { name: "add", note: 2, reason: "not a number" }),
    );
    assert.equal((await store.read.reply(tenant, run.id, 1))?.refused, "not a number");
    assert.equal(await store.read.reply(tenant, run.id, 2), undefined);
  });

  it("only the store says which gate a signal's position opens", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(opened(0));
    const forgedSignal = { name: "paid", value: 1, pos: 0 };
    await unchanged(store, () => refused("TAPE_BAD_INPUT", store.intake.signal(tenant, run.id, forgedSignal)));
  });
};

export const startSignals: Cases = ({ it }, fresh) => {
  const message = (value: unknown, key = unique("key")): StartSignal => ({ name: "message", value, key });
  const start = async (store: Store, run: Partial<RunSpec>, held = false) => {
    const holder = held ? { ...claimant(), nonce: nonce() } : undefined;
    const [made] = await store.intake.createRuns(tenant, [spec(run)], holder);
    if (!made!.ok) throw made!.error;
    return made!;
  };

  it("a start creates the run with its signals, or sends them to the run that lives", async () => {
    const { store } = fresh();
    const id = unique("chat");
    const first = await start(store, { id, signals: [message("a"), message("b")] });
    assert.equal(first.fresh, true);
    const joined = await start(store, { id, input: "another", signals: [message("c")] });
    assert.deepEqual([joined.fresh, joined.journal], [false, first.journal]);
    assert.deepEqual(
      (await notesOf(store, id)).map(({ value }) => value),
      ["a", "b", "c"],
    );
    assert.deepEqual(
      (await find(store, "recovery")).map(({ journal, notes }) => [journal, notes]),
      [[first.journal, 3]],
    );
    await refused("TAPE_RUN_CONFLICT", start(store, { id, workflow: "other", signals: [message("d")] }));
    await refused("TAPE_RUN_CONFLICT", start(store, { id, input: "another" }));
    assert.equal((await notesOf(store, id)).length, 3);
  });

  it("a creator with the first term learns of the notes", async () => {
    const { store } = fresh();
    const id = unique("chat");
    const { term } = await start(store, { id, signals: [message("a"), message("b")] }, true);
    assert.deepEqual([term?.notes, term?.head], [2, 1]);
    assert.equal(await statusOf(store, id), "RUNNING");
    const park = record("term.ended", { reason: "released", notesTaken: 0 });
    await refused("TAPE_NOTES_PENDING", store.fenced.append(term!.fence, { after: 1, records: [park] }));
  });

  it("a repeated start sends each key once, from many clients at once", async () => {
    const { store, another } = fresh();
    const id = unique("chat");
    const clients = [store, await another()];
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, k) =>
        start(clients[k % 2]!, { id, input: k, signals: [message(k, `own-${k}`), message("shared", "shared")] }),
      ),
    );
    assert.deepEqual(countOutcomes(results.map(({ fresh: made }) => made)), { true: 1, false: 9 });
    const values = (await notesOf(store, id)).map(({ value }) => String(value));
    assert.deepEqual(values.toSorted(), [..."0123456789", "shared"]);
  });

  it("a run that has ended takes no new signal, and a refused start leaves nothing", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await store.intake.signal(tenant, run.id, { name: "message", value: 1, key: "known" });
    await run.write(record("notes.taken", { through: 1 }), ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    const many = Array.from({ length: store.limits.startSignals + 1 }, (_, k) => message(k));
    await unchanged(store, async () => {
      const known = message(1, "known");
      assert.equal((await start(store, { id: run.id, signals: [known] })).fresh, false, "it was sent before");
      await refused("TAPE_RUN_ENDED", start(store, { id: run.id, signals: [known, message(2)] }));
      await refused("TAPE_TOO_LARGE", start(store, { signals: many }));
      await refused("TAPE_BAD_INPUT", start(store, { signals: [{ name: "message", value: 1 } as StartSignal] }));
      await refused("TAPE_NOT_ENCODABLE", start(store, { signals: [message(() => 1)] }));
    });
  });

  it("an idempotency key covers a start with its signals", async () => {
    const { store } = fresh();
    const once = store.once({ tenant, key: unique("once"), hash: "h" });
    const run = spec({ signals: [message("a", "k")] });
    for (const fresh of [true, true]) {
      const [made] = await once.createRuns(tenant, [run]);
      assert.ok(made?.ok && made.fresh === fresh);
    }
    assert.equal((await notesOf(store, run.id)).length, 1);
  });
};

export const callbacks: Cases = ({ it }, fresh) => {
  it("a token opens its gate once, and a repeat changes nothing", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(opened(0), opened(1, "raw"));
    const [json, raw] = [await tokenOf(run, 0), await tokenOf(run, 1)];
    const body = { value: { receipt: 7n }, raw: { body: "{}", headers: { "x-signature": "s" } } };
    assert.deepEqual(await store.intake.deliver(tenant, json, body), { duplicate: false });
    assert.deepEqual(await store.intake.deliver(tenant, raw, body), { duplicate: false });
    await unchanged(store, async () => {
      assert.deepEqual(await store.intake.deliver(tenant, json, { value: "other" }), { duplicate: true });
    });
    const notes = await notesOf(store, run.id);
    assert.deepEqual(notes, [
      { name: "paid", value: body.value, pos: 0 },
      { name: "paid", value: body.raw, pos: 1 },
    ]);
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", received(0, 2, 1)));
    await run.write(record("notes.taken", { through: 2 }), received(0, 1, body.value), received(1, 2, body.raw));
    assert.deepEqual(await store.intake.deliver(tenant, json, body), { duplicate: true }, "also once it is resolved");
  });

  it("no other signal resolves a callback, and no other token opens it", async () => {
    const { store } = fresh();
    const [run, other] = [await begin(store), await begin(store)];
    for (const one of [run, other]) await one.write(opened(0), opened(1));
    await store.intake.signal(tenant, run.id, { name: "paid", value: 1 });
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", received(0, 1, 1)));
    const token = await tokenOf(run, 0);
    const mac = token.split(".")[2]!;
    const wrong = [
      `${run.journal}.1.${mac}`,
      `${other.journal}.0.${mac}`,
      `${run.journal}.0.${mac.startsWith("A") ? "B" : "A"}${mac.slice(1)}`,
      `${run.journal}.7.${mac}`,
      `0${token}`,
      `${token} `,
      "x",
    ];
    await unchanged(store, async () => {
      for (const text of wrong) await refused("TAPE_NOT_FOUND", store.intake.deliver(tenant, text, { value: 1 }));
      await refused("TAPE_NOT_FOUND", store.intake.deliver("globex", token, { value: 1 }));
      await refused("TAPE_NOT_FOUND", store.intake.deliver(tenant, await tokenOf(run, 7), { value: 1 }));
      await refused("TAPE_BAD_INPUT", store.intake.deliver(tenant, token, { raw: { body: "no JSON", headers: {} } }));
    });
    assert.deepEqual(await store.intake.deliver(undefined, token, { value: 1 }), { duplicate: false });
  });

  it("a callback that has timed out or been withdrawn is not found", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(opened(0), opened(1));
    const tokens = [await tokenOf(run, 0), await tokenOf(run, 1)];
    await run.write(record("gate.resolved", { pos: 0, to: "TIMED_OUT" }));
    await refused("TAPE_NOT_FOUND", store.intake.deliver(tenant, tokens[0]!, { value: 1 }));
    await run.write(record("run.decided", { cause: "completed", outcome: 1 }), ended("COMPLETED", { notesTaken: 0 }));
    for (const token of tokens) await refused("TAPE_NOT_FOUND", store.intake.deliver(tenant, token, { value: 1 }));
  });

  it("of many calls at once one opens the gate", async () => {
    const { store, another } = fresh();
    const run = await begin(store);
    await run.write(opened(0));
    const token = await tokenOf(run, 0);
    const clients = [store, await another()];
    const calls = Array.from({ length: 10 }, (_, k) => clients[k % 2]!.intake.deliver(tenant, token, { value: k }));
    assert.deepEqual(countOutcomes((await Promise.all(calls)).map(({ duplicate }) => duplicate)), {
      false: 1,
      true: 9,
    });
    assert.equal((await notesOf(store, run.id)).length, 1);
  });

  it("the secret of a run's callbacks is for its holder, and stays the same", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const other = await begin(store);
    const secret = await store.claim.callbackSecret(run.term.fence);
    assert.notEqual(secret, await store.claim.callbackSecret(other.term.fence));
    for (const more of [{ token: run.term.fence.token + 1n }, { nonce: 1n }, { tenant: "globex" }]) {
      await refused("TAPE_FENCED", store.claim.callbackSecret(forged(run.term, more)));
    }
    await run.release();
    await refused("TAPE_FENCED", store.claim.callbackSecret(run.term.fence));
    const again = await hold(store, run.id);
    assert.equal(
      await store.claim.callbackSecret(again.term.fence),
      secret,
      "the next holder computes the same tokens",
    );
  });
};
