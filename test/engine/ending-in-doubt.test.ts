import { describe, expect, it } from "vitest";
import { type EffectOptions, effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type Observation, outcome } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { type Process, type Stage, stage, tenant, ttlMs } from "./stage.ts";

const stop = gate<null>("stop");

type Dispatch = "inline" | "outbox";
type EndCause = "cancelled" | "failed";
/** What the first attempt does before its response is lost. */
type First = "happens" | "is lost on the way";

/** Steps that leave room for one attempt in a journal of this many records. */
const limits = { journalRecords: 400 };
const steps = 376;

interface Scene {
  readonly s: Stage;
  readonly p: Process;
  readonly id: string;
  /** Requests that have reached the upstream. */
  sent(): number;
  readonly stored: ReadonlySet<string>;
  readonly compensated: readonly unknown[];
}

/**
 * An idempotent effect loses the response of its first attempt; while it waits for its back-off, the run is cancelled
 * or fails. An inline effect backs off within its drive, which a failure waits for. So that drive crashes, and its
 * successor fails the run at once, because the journal is full.
 */
async function endDuringBackoff(
  dispatch: Dispatch,
  ending: EndCause,
  first: First,
  observe?: () => Observation<string>,
): Promise<Scene> {
  const s = await stage({ limits });
  const stored = new Set<string>();
  const compensated: unknown[] = [];
  let sent = 0;
  const options: Partial<EffectOptions<null, string>> = {
    dispatch,
    semantics: "idempotent",
    retry: { attempts: 3, base: "1m" },
    compensate: (_args, result) => void compensated.push(result),
    ...(observe && { observe }),
  };
  const put = effect<null, string>(
    "put",
    (_args, fx) => {
      sent++;
      if (sent > 1 || first === "happens") stored.add(fx.key);
      if (sent === 1) throw new Error("the connection broke");
      return "stored";
    },
    options as EffectOptions<null, string>,
  );
  const fillsJournal = dispatch === "inline" && ending === "failed";
  const caller = workflow("caller", async (tape) => {
    if (fillsJournal) for (let k = 0; k < steps; k++) await tape.step(`step ${k}`, () => k);
    const open = put(null);
    if (dispatch === "inline" || ending === "cancelled") return open;
    open.catch(() => {});
    await tape.gate(stop);
    throw new Error("no");
  }) as unknown as AnyWorkflow;
  const runner = createRunner({ workflows: [caller], effects: [put as never] });
  let p = s.process(runner);
  const id = await p.start(caller);
  const effectRow = async () => (await s.store.read.effects(tenant, { run: id }))[0];
  await p.until(async () => (await effectRow())?.reason === "ack_lost");
  if (ending === "cancelled") await s.store.intake.cancel(tenant, id, { reason: "enough" });
  else if (dispatch === "outbox") await s.store.intake.signal(tenant, id, { name: "stop", value: null });
  else {
    p.crash();
    await s.clock.elapse(ttlMs + 1);
    p = s.process(runner);
  }
  await settled(10);
  return { s, p, id, sent: () => sent, stored, compensated };
}

async function effectsOf({ s, id }: Scene): Promise<string[]> {
  const rows = await s.store.read.effects(tenant, { run: id });
  return rows.map(({ role, status, reason }) => `${role} ${status} ${reason}`);
}

describe.each(["inline", "outbox"] as const)("an %s effect in doubt when its run ends", (dispatch) => {
  describe.each(["cancelled", "failed"] as const)("%s during its back-off", (ending) => {
    it("[INV-18] is observed, and compensated if it happened", async () => {
      const scene = await endDuringBackoff(dispatch, ending, "happens", () => outcome.confirmed("found"));
      const { status, cause } = await scene.p.over(scene.id);
      expect([status, cause]).toEqual(["COMPENSATED", ending]);
      expect(await effectsOf(scene)).toEqual(["effect CONFIRMED observed", "compensation COMPENSATED returned"]);
      expect([scene.sent(), scene.compensated]).toEqual([1, ["found"]]);
    });

    it("is not sent again if it is observed to be absent", async () => {
      const scene = await endDuringBackoff(dispatch, ending, "is lost on the way", () => outcome.absent());
      const { status } = await scene.p.over(scene.id);
      expect([status, await effectsOf(scene)]).toEqual([ending.toUpperCase(), ["effect FAILED ABSENT"]]);
      expect([scene.sent(), scene.stored.size, scene.compensated]).toEqual([1, 0, []]);
    });

    it("is sent again under its key if it has no observe, and compensated", async () => {
      for (const first of ["happens", "is lost on the way"] as const) {
        const scene = await endDuringBackoff(dispatch, ending, first);
        const { status, cause } = await scene.p.over(scene.id);
        expect([status, cause]).toEqual(["COMPENSATED", ending]);
        expect(await effectsOf(scene)).toEqual(["effect CONFIRMED returned", "compensation COMPENSATED returned"]);
        expect([scene.sent(), scene.stored.size, scene.compensated]).toEqual([2, 1, ["stored"]]);
      }
    });

    it("makes its run STUCK if no observation decides it", async () => {
      const scene = await endDuringBackoff(dispatch, ending, "happens", () => outcome.inconclusive("ask later"));
      const { status, stuckFrom } = await scene.p.over(scene.id);
      expect([status, stuckFrom]).toEqual(["STUCK", "ENDING"]);
      expect(await effectsOf(scene)).toEqual(["effect STUCK inconclusive"]);
      expect(scene.sent()).toBe(1);
    });
  });
});
