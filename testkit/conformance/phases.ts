import { strict as assert } from "node:assert";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Cases, record, spec, step, tenant, unique } from "./frame.ts";
import {
  armed,
  begin,
  childEnded,
  confirmed,
  decided,
  dispatched,
  ended,
  find,
  Holder,
  hold,
  holdItem,
  intent,
  settled,
  startChild,
  unchanged,
} from "./holder.ts";

const compensating = record("run.compensating", {});
const stuck = record("run.stuck", { reason: "an operator must decide" });
const unstuck = (to: "LIVE" | "ENDING" | "COMPENSATING") => record("run.unstuck", { to });

/** How a run reaches each phase. */
const ways: Readonly<Record<string, readonly NewRecord[]>> = {
  LIVE: [],
  "ENDING completed": [decided("completed")],
  "ENDING failed": [decided("failed")],
  "ENDING cancelled": [decided("cancelled")],
  COMPENSATING: [decided("failed"), compensating],
  "STUCK from LIVE": [stuck],
  "STUCK from ENDING": [decided("failed"), stuck],
  "STUCK from COMPENSATING": [decided("failed"), compensating, stuck],
};

const statusAfter = { completed: "COMPLETED", failed: "FAILED", cancelled: "CANCELLED" } as const;

const steps: Readonly<Record<string, NewRecord>> = {
  decide: decided("failed"),
  compensate: compensating,
  complete: ended("COMPLETED"),
  fail: ended("FAILED"),
  cancel: ended("CANCELLED"),
  compensated: ended("COMPENSATED"),
  stick: stuck,
  "unstick to LIVE": unstuck("LIVE"),
  "unstick to ENDING": unstuck("ENDING"),
  "unstick to COMPENSATING": unstuck("COMPENSATING"),
};

/** The legal transitions of each phase, and the resulting status. All others must be rejected. */
const legal: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  LIVE: { decide: "ENDING", complete: "COMPLETED", fail: "FAILED", cancel: "CANCELLED", stick: "STUCK" },
  "ENDING completed": { complete: "COMPLETED", stick: "STUCK" },
  "ENDING failed": { fail: "FAILED", compensate: "COMPENSATING", stick: "STUCK" },
  "ENDING cancelled": { cancel: "CANCELLED", compensate: "COMPENSATING", stick: "STUCK" },
  COMPENSATING: { compensated: "COMPENSATED", stick: "STUCK" },
  "STUCK from LIVE": { "unstick to LIVE": "RUNNING" },
  "STUCK from ENDING": { "unstick to ENDING": "ENDING" },
  "STUCK from COMPENSATING": { "unstick to COMPENSATING": "COMPENSATING" },
};

async function runIn(store: Store, phase: string): Promise<Holder> {
  const run = await begin(store);
  const way = ways[phase]!;
  if (way.length > 0) await run.write(...way);
  return run;
}

/** The state machine of runs, driven through records: the store rejects what is not legal, and changes nothing. */
export const phases: Cases = ({ it }, fresh) => {
  it("every legal transition of every phase is accepted", async () => {
    const { store } = fresh();
    for (const [phase, targets] of Object.entries(legal)) {
      for (const [name, status] of Object.entries(targets)) {
        const run = await runIn(store, phase);
        await run.write(steps[name]!);
        assert.equal((await run.view()).status, status, `${phase}: ${name}`);
      }
    }
  });

  it("every other transition of every phase is rejected and changes nothing", async () => {
    const { store } = fresh();
    let refusals = 0;
    for (const phase of Object.keys(ways)) {
      const run = await runIn(store, phase);
      await unchanged(store, async () => {
        for (const [name, illegal] of Object.entries(steps)) {
          if (Object.hasOwn(legal[phase]!, name)) continue;
          const { details } = await run.refused("TAPE_ILLEGAL_TRANSITION", illegal);
          assert.equal(details.journal, run.journal, `${phase}: ${name}`);
          refusals++;
        }
      });
    }
    const allowed = Object.values(legal).flatMap((targets) => Object.keys(targets)).length;
    assert.equal(refusals, Object.keys(ways).length * Object.keys(steps).length - allowed);
  });

  it("an illegal transition rejects the legal records of its append too", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await unchanged(store, () =>
      run.refused("TAPE_ILLEGAL_TRANSITION", step(0), intent(1), decided("failed"), decided("failed")),
    );
    assert.equal((await run.view()).status, "RUNNING");
  });

  it("cause and outcome of a decision survive STUCK and a second decision", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(decided("failed", { error: "card declined" }));
    await run.write(stuck);
    const middle = await run.view();
    assert.deepEqual([middle.status, middle.stuckFrom], ["STUCK", "ENDING"]);
    await run.write(unstuck("ENDING"));
    assert.equal((await run.view()).stuckFrom, null);
    await run.write(ended("FAILED", { outcome: "another" }));
    const { status, cause, outcome } = await run.view();
    assert.deepEqual(
      { status, cause, outcome },
      { status: "FAILED", cause: "failed", outcome: { error: "card declined" } },
    );
    const live = await begin(store);
    await live.write(stuck, unstuck("LIVE"), ended("COMPLETED", { outcome: "well" }));
    assert.equal((await live.view()).outcome, "well");
  });

  it("a compensated run keeps the cause that was decided", async () => {
    const { store } = fresh();
    for (const cause of ["failed", "cancelled"] as const) {
      const run = await begin(store);
      await run.write(decided(cause, "why"), compensating, ended("COMPENSATED"));
      const view = await run.view();
      assert.deepEqual([view.status, view.cause, view.outcome], ["COMPENSATED", cause, "why"]);
    }
  });

  it("deciding withdraws what has not started, and frees its business keys", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(
      intent(0, { businessKey: "order-0" }),
      intent(1, { dispatch: "outbox", businessKey: "order-1" }),
      ...confirmed(2, { businessKey: "order-2" }),
      intent(3, { businessKey: "order-3" }),
      dispatched(3),
      record("gate.opened", { pos: 4, name: "approve", timeoutMs: 60_000 }),
      record("timer.set", { pos: 5, purpose: "sleep", delayMs: 60_000 }),
    );
    await run.write(decided("cancelled"));
    const effects = await store.read.effects(tenant, { run: run.id });
    assert.deepEqual(
      effects.map(({ pos, status }) => `${pos} ${status}`),
      ["0 WITHDRAWN", "1 WITHDRAWN", "2 CONFIRMED", "3 DISPATCHED"],
    );
    const claims = await Promise.all(
      [0, 1, 2, 3].map((k) => store.read.businessKeyOwner(tenant, "wire", `order-${k}`)),
    );
    assert.deepEqual(
      claims.map((claim) => claim?.pos),
      [undefined, undefined, 2, 3],
    );
    assert.deepEqual(
      (await store.read.gates(tenant)).map(({ status }) => status),
      ["WITHDRAWN"],
    );
    assert.deepEqual((await store.read.timers(tenant)).map(({ purpose, status }) => `${purpose} ${status}`).sort(), [
      "gate_timeout CANCELLED",
      "sleep CANCELLED",
    ]);
    const outbox = await store.read.lease(tenant, { journal: effects[1]!.item! });
    assert.equal(outbox?.nextReactor, null, "a withdrawn effect's item is not queued");
    await unchanged(store, async () => {
      await run.refused("TAPE_ILLEGAL_TRANSITION", intent(6));
      await run.refused("TAPE_ILLEGAL_TRANSITION", record("gate.opened", { pos: 7, name: "g" }));
      await run.refused("TAPE_ILLEGAL_TRANSITION", dispatched(0));
      await run.refused("TAPE_RUN_UNSETTLED", ended("CANCELLED"));
    });
    await run.write(settled(3, "FAILED")); // settling an effect in doubt under its own key is allowed
    await run.write(ended("CANCELLED"));
    assert.equal((await run.view()).status, "CANCELLED");
  });

  /** How an effect returns to PENDING: the reasons of its settlements, one for each attempt. */
  const pendingAfter = (pos: number, reasons: readonly string[], run?: number): NewRecord[] => {
    const of = run === undefined ? {} : { run };
    return reasons.flatMap((reason, k) => [
      dispatched(pos, { ...of, attempt: k + 1 }),
      settled(pos, "PENDING", { ...of, reason }),
    ]);
  };
  const mayHaveHappened = [["ack_lost"], ["lease_lost"], ["ack_lost", "not_sent"], ["not_sent", "absent"]];

  it("[INV-18] deciding withdraws no effect that may have happened", async () => {
    const { store } = fresh();
    for (const cause of ["completed", "failed", "cancelled"] as const) {
      const run = await begin(store);
      for (const [pos, reasons] of mayHaveHappened.entries())
        await run.write(intent(pos, { businessKey: `${run.id} ${pos}` }), ...pendingAfter(pos, reasons));
      await run.write(intent(4), ...pendingAfter(4, ["not_sent", "not_sent"]));
      await run.write(intent(5, { semantics: "read" }), ...pendingAfter(5, ["ack_lost"]));
      await run.write(decided(cause));
      const effects = await store.read.effects(tenant, { run: run.id });
      assert.deepEqual(
        effects.map(({ pos, status, uncertain }) => `${pos} ${status} ${uncertain}`),
        [
          ...["0 PENDING true", "1 PENDING true", "2 PENDING true", "3 PENDING true"],
          ...["4 WITHDRAWN false", "5 WITHDRAWN true"],
        ],
      );
      assert.equal(
        (await store.read.businessKeyOwner(tenant, "wire", `${run.id} 0`))?.pos,
        0,
        "it keeps its business key",
      );
      await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended(statusAfter[cause])));
      for (const pos of mayHaveHappened.keys()) await run.write(settled(pos, "UNKNOWN", { reason: "run_ending" }));
      await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended(statusAfter[cause])));
      for (const pos of mayHaveHappened.keys()) {
        const item = await holdItem(store, run.id, pos);
        await item.write(settled(pos, "FAILED", { run: run.journal, reason: "ABSENT" }));
        await item.release();
      }
      await run.write(ended(statusAfter[cause], { notesTaken: 4 }));
    }
  });

  it("deciding hands an outbox effect that may have happened to the reconciler", async () => {
    const { store } = fresh();
    for (const reasons of mayHaveHappened) {
      const run = await begin(store);
      await run.write(intent(0, { dispatch: "outbox" }), intent(1, { dispatch: "outbox" }));
      const sender = await holdItem(store, run.id, 0);
      await sender.write(...pendingAfter(0, reasons, run.journal));
      await sender.release(0, { nextReactor: "outbox", delayMs: 3_600_000 });
      await run.write(decided("failed"));
      assert.deepEqual([(await run.effect(0)).status, (await run.effect(1)).status], ["PENDING", "WITHDRAWN"]);
      assert.deepEqual(await find(store, "outbox"), []);
      const [term, ...rest] = await find(store, "reconciler");
      assert.deepEqual([term?.journal, rest.length], [sender.journal, 0], "at once, whatever its back-off was");
      const item = new Holder(store, term!, run.id);
      await item.write(settled(0, "UNKNOWN", { run: run.journal, reason: "run_ending" }));
      await unchanged(store, async () => {
        await run.refused("TAPE_RUN_UNSETTLED", compensating);
        await run.refused("TAPE_RUN_UNSETTLED", ended("FAILED"));
      });
      await item.write(
        settled(0, "CONFIRMED", { run: run.journal, reason: "observed", value: 1 }),
        armed(0, { run: run.journal }),
      );
      await item.release();
      await run.write(compensating);
      assert.equal((await run.effect(0, 1)).status, "PENDING", "an effect that did happen is owed");
      const [due] = await find(store, "compensation");
      assert.equal(due?.journal, (await run.effect(0, 1)).item);
    }
  });

  it("an outbox effect that its sender holds at the decision stays with the sender", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { dispatch: "outbox" }));
    const sender = await holdItem(store, run.id, 0);
    await sender.write(...pendingAfter(0, ["ack_lost"], run.journal));
    await run.write(decided("cancelled"));
    assert.deepEqual(await find(store, "reconciler"), []);
    await sender.write(settled(0, "UNKNOWN", { run: run.journal, reason: "run_ending" }));
    await sender.release(0, { nextReactor: "reconciler" });
    assert.deepEqual(
      (await find(store, "reconciler")).map(({ journal }) => journal),
      [sender.journal],
    );
  });

  it("a sender that claimed an effect before the decision may no longer dispatch it", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { dispatch: "outbox" }));
    const sender = await holdItem(store, run.id, 0);
    await run.write(decided("cancelled"));
    await unchanged(store, () => sender.refused("TAPE_ILLEGAL_TRANSITION", dispatched(0, { run: run.journal })));
    await sender.release();
    await run.write(ended("CANCELLED"));
  });

  it("a run neither ends nor compensates while it has open work", async () => {
    const { store } = fresh();
    const openings: Record<string, readonly NewRecord[]> = {
      "a pending effect": [intent(0)],
      "a dispatched effect": [intent(0), dispatched(0)],
      "an effect in doubt": [intent(0), dispatched(0), settled(0, "UNKNOWN")],
      "an open gate": [record("gate.opened", { pos: 0, name: "g" })],
      "a timer": [record("timer.set", { pos: 0, purpose: "sleep", delayMs: 60_000 })],
      "a living child": [
        record("child.started", { pos: 0, id: unique("child"), workflow: "w", input: 1, inputHash: "h" }),
      ],
    };
    for (const [what, records] of Object.entries(openings)) {
      const run = await begin(store);
      await run.write(...records);
      await unchanged(store, async () => {
        for (const status of ["COMPLETED", "FAILED", "CANCELLED"] as const) {
          const { code } = await run.refused("TAPE_RUN_UNSETTLED", ended(status, { outcome: 1 }));
          assert.equal(code, "TAPE_RUN_UNSETTLED", what);
        }
      });
    }
    for (const opening of ["a dispatched effect", "an effect in doubt", "a living child"]) {
      const run = await begin(store);
      const records = openings[opening]!.map((one) =>
        one.kind === "child.started" ? record("child.started", { ...one.data, id: unique("child") }) : one,
      );
      await run.write(...records, decided("failed"));
      await unchanged(store, async () => {
        await run.refused("TAPE_RUN_UNSETTLED", ended("FAILED"));
        await run.refused("TAPE_RUN_UNSETTLED", compensating);
      });
    }
  });

  it("a run with obligations ends as COMPLETED or COMPENSATED, never as FAILED", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0));
    await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended("FAILED", { outcome: 1 })));
    await run.write(decided("failed"));
    await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended("FAILED")));
    await run.write(compensating);
    await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended("COMPENSATED")));
  });

  it("a run ends only under its own parent", async () => {
    const { store } = fresh();
    const parent = await begin(store);
    const stranger = await begin(store);
    const child = await startChild(parent, 0, unique("child"));
    await unchanged(store, async () => {
      await child.refused("TAPE_ILLEGAL_TRANSITION", ended("COMPLETED", { outcome: 1 }));
      const wrong = { journal: stranger.journal, pos: 0, id: child.id };
      await child.refused("TAPE_ILLEGAL_TRANSITION", ended("COMPLETED", { outcome: 1, parent: wrong }));
      await parent.refused("TAPE_RUN_UNSETTLED", ended("COMPLETED", { outcome: 1, parent: wrong }));
    });
    await childEnded(child, parent, 0, "COMPLETED", { outcome: 1 });
    assert.equal((await child.view()).status, "COMPLETED");
  });

  it("a stuck run can be parked, acquired and unstuck", async () => {
    const { store } = fresh();
    const runSpec = spec();
    await store.intake.createRuns(tenant, [runSpec]);
    const first = await hold(store, runSpec.id);
    await first.write(stuck);
    await first.release();
    assert.equal((await first.view()).status, "STUCK");
    const operator = await hold(
      store,
      runSpec.id,
      { run: runSpec.id },
      { reason: "manual", by: "ann", auditReason: "fixed" },
    );
    await operator.write(unstuck("LIVE"));
    await operator.release(0, { nextReactor: "recovery" });
    assert.equal((await operator.view()).status, "RUNNABLE");
  });

  it("the timer of a redrive makes a stuck run due, with a note", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    await run.write(stuck, record("timer.set", { pos: 7, purpose: "redrive", delayMs: 20 }));
    await run.release();
    const timer = { run: run.journal, pos: 7, purpose: "redrive" };
    await elapse(50);
    assert.equal(await store.intake.fireTimer(tenant, timer), true);
    assert.equal(await store.intake.fireTimer(tenant, timer), false);
    const [note] = await store.read.journal(tenant, { run: run.id }, { inbox: true });
    assert.deepEqual([note?.kind, note?.data], ["timer.fired", { pos: 7, purpose: "redrive" }]);
    assert.equal((await store.read.lease(tenant, { run: run.id }))?.nextReactor, "recovery");
    assert.equal((await run.view()).status, "STUCK");
  });
};
