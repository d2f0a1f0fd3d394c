import { strict as assert } from "node:assert";
import { sinkLease } from "../../src/model/dead-letter.ts";
import type { Term } from "../../src/model/lease.ts";
import { checkpointText } from "../../src/model/sink-checkpoint.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { letterCursor } from "../../src/store/list-cursors.ts";
import { letter } from "./foreign-calls.ts";
import {
  acquired,
  type Cases,
  claimant,
  forged,
  heldRun,
  record,
  refused,
  request,
  spec,
  tenant,
  unique,
} from "./frame.ts";
import { begin, ended, holdItem, intent, unchanged } from "./holder.ts";
import {
  anotherClaim,
  brief,
  claimForName,
  lasting,
  leaseOf,
  pastBrief,
  preempting,
  release,
} from "./lease-fixtures.ts";

const audit = { by: "ann", reason: "drill" };

/** A lease of a sink with a name of its own. */
async function sinkOn(store: Store): Promise<Term & { readonly sink: string }> {
  const sink = unique("sink");
  const term = await acquired(store, request({ name: sinkLease(sink) }, { claimant: claimant(undefined, lasting) }));
  return { ...term, sink };
}

/** The end of the feed, by its cursor. */
async function cursorNow(store: Store): Promise<string> {
  for (let cursor: string | undefined; ; ) {
    const page = await store.read.feed(cursor, undefined, tenant);
    ({ cursor } = page);
    if (page.records.length === 0 && page.more !== true) return cursor;
  }
}

/** A finished run; returns when the feed shows its end. */
async function finishedRun(store: Store): Promise<string> {
  const run = await begin(store);
  await run.write(ended("COMPLETED", { outcome: 1 }));
  for (;;) {
    const page = await store.read.feed(undefined, undefined, tenant);
    if (page.records.some(({ journal, kind }) => journal === run.journal && kind === "run.ended")) return run.id;
  }
}

/** Checkpoints of named leases, dead letters of sinks, and what pruning keeps for them. */
export const checkpoints: Cases = ({ it }, fresh) => {
  it("[INV-20] a checkpoint moves under its lease's token, and moving it writes no record", async () => {
    const { store } = fresh();
    const req = claimForName();
    const term = await acquired(store, req);
    assert.equal(term.checkpoint, undefined);
    const before = await store.read.journal(tenant, req.target);
    await store.fenced.checkpoint(term.fence, "one");
    await store.fenced.checkpoint(term.fence, "two");
    assert.equal((await leaseOf(store, req.target)).checkpoint, "two");
    assert.deepEqual(await store.read.journal(tenant, req.target), before);
    assert.equal((await store.read.leases(tenant)).find(({ name }) => name === req.target.name)?.checkpoint, "two");
    assert.equal((await store.read.leases(tenant, { kind: "name", names: [req.target.name] }))[0]?.checkpoint, "two");
    await store.fenced.checkpoint(term.fence, null);
    assert.equal((await leaseOf(store, req.target)).checkpoint, undefined);
  });

  it("the next holder gets the checkpoint: after a release, a takeover, a pause and by a repeat", async () => {
    const { store, another } = fresh();
    const req = claimForName();
    const first = await acquired(store, req);
    await store.fenced.checkpoint(first.fence, "a");
    assert.equal((await acquired(store, req)).checkpoint, "a", "the same attempt, repeated");
    await release(store, first);
    const second = await acquired(await another(), anotherClaim(req));
    assert.equal(second.checkpoint, "a");
    await store.fenced.checkpoint(second.fence, "b");
    const third = await acquired(store, anotherClaim(req, preempting));
    assert.equal(third.checkpoint, "b");
    await store.claim.pause(tenant, req.target.name, true, "ann", "drill");
    await store.claim.pause(tenant, req.target.name, false, "ann", "drill");
    assert.equal((await acquired(store, anotherClaim(req))).checkpoint, "b");
  });

  it("[INV-20] a stale holder cannot move the checkpoint, whatever it sends", async () => {
    const { store, elapse } = fresh();
    const req = claimForName({ claimant: claimant(undefined, brief) });
    const stale = await acquired(store, req);
    await store.fenced.checkpoint(stale.fence, "mine");
    await elapse(pastBrief);
    await store.fenced.checkpoint(stale.fence, "still mine"); // expired, but no other process has taken it
    const successor = await acquired(store, anotherClaim(req));
    assert.equal(successor.checkpoint, "still mine");
    await unchanged(store, async () => {
      await refused("TAPE_FENCED", store.fenced.checkpoint(stale.fence, "late"));
      await refused("TAPE_FENCED", store.fenced.checkpoint(stale.fence, null));
      await refused("TAPE_FENCED", store.fenced.checkpoint(forged(successor, { nonce: 1n }), "x"));
      await refused(
        "TAPE_FENCED",
        store.fenced.checkpoint(forged(successor, { token: successor.fence.token + 1n }), "x"),
      );
      await refused("TAPE_FENCED", store.fenced.checkpoint(forged(successor, { tenant: "globex" }), "x"));
    });
    await release(store, successor);
    await refused("TAPE_FENCED", store.fenced.checkpoint(successor.fence, "after the release"));
    assert.equal((await leaseOf(store, req.target)).checkpoint, "still mine");
  });

  it("a takeover and a checkpoint at the same moment leave one truth", async () => {
    const { store, another } = fresh();
    const other = await another();
    for (let round = 0; round < 4; round++) {
      const req = claimForName();
      const holder = await acquired(store, req);
      await store.fenced.checkpoint(holder.fence, "old");
      const [moved, successor] = await Promise.all([
        store.fenced.checkpoint(holder.fence, "new").then(
          () => true,
          () => false,
        ),
        acquired(other, anotherClaim(req, preempting)),
      ]);
      assert.equal(successor.checkpoint, moved ? "new" : "old");
      assert.equal((await leaseOf(store, req.target)).checkpoint, moved ? "new" : "old");
    }
  });

  it("a checkpoint is refused for a run, when it is too long, and when it is no text", async () => {
    const { store } = fresh();
    const run = await heldRun(store);
    const term = await acquired(store, claimForName());
    await unchanged(store, async () => {
      await refused("TAPE_BAD_INPUT", store.fenced.checkpoint(run.fence, "x"));
      await refused("TAPE_TOO_LARGE", store.fenced.checkpoint(term.fence, "é".repeat(2_049)));
      for (const bad of [5, undefined, {}, "a\0b", "\ud800"]) {
        await refused("TAPE_BAD_INPUT", store.fenced.checkpoint(term.fence, bad as string));
      }
      await refused("TAPE_BAD_INPUT", store.fenced.checkpoint({} as never, "x"));
    });
    await store.fenced.checkpoint(term.fence, "é".repeat(2_048));
  });

  it("a restore ends the term and keeps the checkpoint", async () => {
    const { store } = fresh();
    const req = claimForName();
    const term = await acquired(store, req);
    await store.fenced.checkpoint(term.fence, "kept");
    await store.claim.restored("a backup was restored");
    await refused("TAPE_FENCED", store.fenced.checkpoint(term.fence, "late"));
    assert.equal((await acquired(store, anotherClaim(req))).checkpoint, "kept");
  });

  it("a dead letter is written once, under the fence of its sink", async () => {
    const { store } = fresh();
    const term = await sinkOn(store);
    const one = letter("7:1:5", 7);
    await store.fenced.deadLetter(term.fence, one);
    await store.fenced.deadLetter(term.fence, { ...one, attempts: 4, error: "again" });
    const [found, ...others] = await store.read.deadLetters(tenant, term.sink);
    assert.deepEqual(others, []);
    const { at, ...rest } = found!;
    assert.deepEqual(rest, { ...one, attempts: 4, error: "again", sink: term.sink, state: "OPEN" });
    assert.ok(at > 0);
    const [row] = (await store.read.sinks(tenant)).filter(({ sink }) => sink === term.sink);
    assert.equal(row?.openLetters, 1);
    assert.equal(row.lease.token, term.fence.token);
    const unsunk = await acquired(store, claimForName());
    await refused("TAPE_BAD_INPUT", store.fenced.deadLetter(unsunk.fence, one));
    await acquired(store, request({ name: sinkLease(term.sink) }, preempting));
    await refused("TAPE_FENCED", store.fenced.deadLetter(term.fence, letter("8:1:5", 8)));
    await refused("TAPE_FENCED", store.fenced.letterSent(term.fence, one.event));
    assert.equal((await store.read.deadLetters(tenant, term.sink)).length, 1);
  });

  it("operators replay and discard dead letters; what they settled stays settled", async () => {
    const { store } = fresh();
    const term = await sinkOn(store);
    const { sink } = term;
    for (const k of [1, 2, 3]) await store.fenced.deadLetter(term.fence, letter(`${k}:1:5`, k));
    const eventsIn = async (state: "OPEN" | "REPLAY" | "SENT" | "DISCARDED") =>
      (await store.read.deadLetters(tenant, sink, { state })).map(({ event }) => event);
    assert.equal(await store.intake.settleLetters(tenant, sink, "REPLAY", ["1:1:5", "9:9:9"], audit), 1);
    assert.equal(await store.intake.settleLetters(tenant, sink, "REPLAY", ["1:1:5"], audit), 0);
    assert.deepEqual([await eventsIn("REPLAY"), await eventsIn("OPEN")], [["1:1:5"], ["2:1:5", "3:1:5"]]);
    await store.fenced.deadLetter(term.fence, letter("1:1:5", 1)); // the replay failed
    assert.deepEqual(await eventsIn("OPEN"), ["1:1:5", "2:1:5", "3:1:5"]);
    assert.equal(await store.intake.settleLetters(tenant, sink, "DISCARDED", ["2:1:5"], audit), 1);
    assert.equal(await store.intake.settleLetters(tenant, sink, "REPLAY", undefined, audit), 2);
    await store.fenced.letterSent(term.fence, "1:1:5");
    await store.fenced.letterSent(term.fence, "2:1:5"); // discarded: there is nothing to send
    await store.fenced.deadLetter(term.fence, letter("2:1:5", 2)); // met again after a crash
    await store.fenced.deadLetter(term.fence, letter("1:1:5", 1));
    assert.deepEqual(await eventsIn("OPEN"), []);
    assert.deepEqual([await eventsIn("SENT"), await eventsIn("REPLAY")], [["1:1:5"], ["3:1:5"]]);
    assert.deepEqual(await eventsIn("DISCARDED"), ["2:1:5"]);
    const actions = (await store.read.audit(tenant)).map(({ action, detail }) => [action, detail]);
    assert.deepEqual(actions[0], ["sink.replay", { tenant, sink, letters: 2 }]);
    await refused("TAPE_SINK_UNKNOWN", store.intake.settleLetters(tenant, "none", "REPLAY", undefined, audit));
  });

  it("dead letters and sinks are listed page by page", async () => {
    const { store } = fresh();
    const both = [await sinkOn(store), await sinkOn(store)];
    const [one, two] = both.sort((a, b) => (a.sink < b.sink ? -1 : 1)) as [(typeof both)[0], (typeof both)[0]];
    for (let k = 1; k <= 5; k++) await store.fenced.deadLetter(one.fence, letter(`${k}:1:5`, k));
    const events: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await store.read.deadLetters(tenant, one.sink, { limit: 2, ...(after && { after }) });
      events.push(...page.map(({ event }) => event));
      if (page.more !== true) break;
      after = letterCursor(page.at(-1)!);
    }
    assert.deepEqual(events, ["1:1:5", "2:1:5", "3:1:5", "4:1:5", "5:1:5"]);
    const first = await store.read.sinks(tenant, { limit: 1 });
    assert.deepEqual([first.map(({ sink }) => sink), first.more], [[one.sink], true]);
    const rest = await store.read.sinks(tenant, { above: one.sink });
    assert.deepEqual(
      rest.map(({ sink }) => sink),
      [two.sink],
    );
    await refused("TAPE_BAD_INPUT", store.read.deadLetters(tenant, one.sink, { after: "nonsense" }));
    await refused("TAPE_BAD_INPUT", store.read.deadLetters(tenant, one.sink, { state: "LOST" as never }));
  });

  it("pruning keeps what a sink has not passed", async () => {
    const { store } = fresh();
    const before = await finishedRun(store);
    const term = await sinkOn(store);
    const lagging = await sinkOn(store);
    const ahead = JSON.stringify({ cursor: await cursorNow(store) });
    await store.fenced.checkpoint(lagging.fence, ahead);
    const after = await finishedRun(store);
    await store.fenced.checkpoint(term.fence, JSON.stringify({ cursor: await cursorNow(store) }));
    const prune = async () => store.intake.prune(tenant, (await store.read.now()) + 1, 10);
    assert.equal(await prune(), 1);
    assert.equal(await store.read.run(tenant, before), undefined);
    assert.ok((await store.read.run(tenant, after)) !== undefined, "one of two sinks has not passed it");
    await store.fenced.checkpoint(lagging.fence, "unreadable");
    assert.equal(await prune(), 0, "a checkpoint that cannot be read has passed nothing");
    await store.fenced.checkpoint(lagging.fence, null);
    assert.equal(await prune(), 1, "a sink that was forgotten holds nothing back");
  });

  it("a sink is late by the first record that it has not passed; the sinks of others do not count", async () => {
    const { store, elapse } = fresh();
    const term = await sinkOn(store);
    const row = async () => (await store.read.sinks(tenant)).find(({ sink }) => sink === term.sink)!;
    const { state, lagMs, passedAt, keptRuns } = await row();
    assert.deepEqual([state, lagMs, passedAt, keptRuns], ["running", 0, undefined, 0], "it has no checkpoint");
    const { epoch: storeEpoch } = await store.read.settings();
    const checkpoint = async (cursor: string | null, more = {}) =>
      store.fenced.checkpoint(term.fence, checkpointText({ cursor, at: 5, epoch: storeEpoch, ...more }));
    await checkpoint(await cursorNow(store));
    await store.intake.createRuns("globex", [spec()]);
    const upToDate = await row();
    assert.deepEqual([upToDate.lagMs, upToDate.passedAt], [0, 5]);
    await finishedRun(store);
    await elapse(20);
    const late = await row();
    assert.ok(late.lagMs >= 15 && late.lagMs < 60_000, `${late.lagMs} ms late`);
    const paused = { by: "ann", reason: "drill", at: 7 };
    await checkpoint(await cursorNow(store), { paused });
    const held = await row();
    assert.deepEqual([held.state, held.lagMs, held.paused], ["paused", 0, paused]);
    await checkpoint(null);
    const first = await row();
    assert.ok(first.lagMs >= late.lagMs, "from the start");
    assert.equal(first.passedAt, undefined);
    await store.fenced.checkpoint(term.fence, "unreadable");
    assert.ok((await row()).lagMs >= late.lagMs, "it has passed nothing that is known");
    await release(store, term);
    assert.equal((await row()).state, "off");
    assert.deepEqual(await store.read.sinks("globex"), []);
  });

  it("pruning keeps a run for a late record of its item; an operator may prune past a sink", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { dispatch: "outbox" }));
    const item = await holdItem(store, run.id, 0);
    await item.write(
      record("effect.dispatched", { run: run.journal, pos: 0, attempt: 1, sendWithinMs: 1_000 }),
      record("effect.settled", { run: run.journal, pos: 0, to: "CONFIRMED", reason: "returned", value: 1 }),
    );
    const { notes } = await run.view();
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: notes }));
    const term = await sinkOn(store);
    await store.fenced.checkpoint(term.fence, JSON.stringify({ cursor: await cursorNow(store) }));
    await item.release();
    const prune = async (past?: boolean, by?: typeof audit) =>
      store.intake.prune(tenant, (await store.read.now()) + 1, 10, by, past);
    assert.equal(await prune(), 0);
    await refused("TAPE_BAD_INPUT", prune(true));
    assert.equal(await prune(true, audit), 1);
    const [entry] = await store.read.audit(tenant);
    assert.deepEqual([entry!.action, (entry!.detail as { past?: boolean }).past], ["runs.prune", true]);
  });

  it("subjects name the run, item or lease of a record", async () => {
    const { store } = fresh();
    const parent = await begin(store, { labels: { region: "eu" } });
    await parent.write(intent(0, { dispatch: "outbox", name: "pay" }));
    const { item } = await parent.effect(0);
    const term = await sinkOn(store);
    const found = await store.read.subjects(tenant, [parent.journal, item!, term.journal, 999_999, parent.journal]);
    const run = {
      id: parent.id,
      workflow: "w",
      version: null,
      labels: { region: "eu" },
      root: parent.id,
      parent: null,
    };
    assert.deepEqual(
      [...found].sort((a, b) => a.journal - b.journal),
      [
        { journal: parent.journal, kind: "run", run },
        { journal: item!, kind: "item", run, item: { pos: 0, sub: 0, name: "pay" } },
        { journal: term.journal, kind: "name", name: sinkLease(term.sink) },
      ].sort((a, b) => a.journal - b.journal),
    );
    assert.deepEqual(await store.read.subjects(tenant, []), []);
    assert.deepEqual(await store.read.subjects("globex", [parent.journal]), []);
  });
};
