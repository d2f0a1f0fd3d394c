import type { TapeContext } from "../src/sdk/context.ts";
import { gate } from "../src/sdk/gate.ts";
import { type Workflow, workflow } from "../src/sdk/workflow.ts";
import { startWallMs } from "../testkit/kit/virtual-time.ts";
import { runBooking, type TransactionOp } from "./bookings.ts";
import type { EffectArgs, SimulatedEffects } from "./effects.ts";
import { type ContinueOp, continueWith } from "./generations.ts";
import { guardedGate } from "./guarded-gate.ts";
import type { InsideOp, InsideWork } from "./inside.ts";
import type { LanesOp, LaneWork } from "./lanes.ts";
import type { ModelOp, ModelWork } from "./models.ts";
import { callRoster, type ObjectOp } from "./objects.ts";
import type { DetachedOp, ScopeOp, ScopeWork } from "./scope-work.ts";
import type { StreamOp, StreamWork } from "./streaming.ts";
import { runTalkOp, type TalkOp } from "./talk-ops.ts";
import { type TrialOp, type TrialWork, trialStallMs } from "./trials.ts";

export type Op =
  | { readonly op: "step"; readonly fails: boolean }
  | { readonly op: "sample" }
  | TransactionOp
  | { readonly op: "effect"; readonly effect: string; readonly args: EffectArgs; readonly caught: boolean }
  | { readonly op: "gate"; readonly name: string; readonly timeoutMs?: number }
  | { readonly op: "guarded" }
  | TalkOp
  | { readonly op: "sleep"; readonly ms: number }
  | { readonly op: "child"; readonly ops: readonly Op[]; readonly awaited: boolean }
  | { readonly op: "all" | "race"; readonly branches: readonly (readonly Op[])[] }
  | LanesOp
  | TrialOp
  | InsideOp
  | StreamOp
  | ModelOp
  | ObjectOp
  | ScopeOp<Op>
  | DetachedOp<Op>
  | ContinueOp<Op>
  | { readonly op: "tidy"; readonly ops: readonly Op[] }
  | { readonly op: "spend"; readonly usd: number; readonly cost: number; readonly ms: number }
  | { readonly op: "put"; readonly key: string }
  | { readonly op: "fail" };

export interface Program {
  readonly ops: readonly Op[];
  /** Run-level attempts. */
  readonly attempts: number;
}

/** The workflow that all simulated runs execute: an interpreter of {@link Op}. */
export function programs(
  effects: SimulatedEffects,
  local: LaneWork,
  onToken: (token: string) => void,
  trials: TrialWork,
  [inside, streaming, models, scopes]: readonly [InsideWork, StreamWork, ModelWork, ScopeWork],
): Readonly<Record<"once" | "thrice" | "limited", Workflow<Program, unknown>>> {
  const runOps = async (tape: TapeContext, ops: readonly Op[], whole: Program): Promise<unknown[]> => {
    const results: unknown[] = [];
    for (const op of ops) results.push(await runOp(tape, op, whole));
    return results;
  };
  const runOp = async (tape: TapeContext, op: Op, whole: Program): Promise<unknown> => {
    switch (op.op) {
      case "step":
        return step(tape, op.fails);
      case "transaction":
        return runBooking(tape, op);
      case "sample":
        return [await tape.sample("dice", () => 4), tape.now(), tape.uuid(), tape.random()];
      case "effect":
        return callEffect(tape, effects, op);
      case "gate":
        return tape.gate(gate(op.name), op.timeoutMs === undefined ? {} : { timeout: op.timeoutMs });
      case "guarded":
        return tape.gate(guardedGate);
      case "publish":
      case "label":
      case "answer":
      case "callback":
        return runTalkOp(tape, op, onToken);
      case "sleep":
        return sleepFor(tape, op.ms);
      case "child":
        return spawn(tape, once, op);
      case "all":
      case "race":
        return joined(tape, op, (branch) => runOps(tape, branch, whole));
      case "lanes":
        return local.runLanes(tape, op);
      case "trial":
        return trials.run(tape, op);
      case "inside":
        return inside.stay(tape, op);
      case "stream":
        return streaming.run(tape, op);
      case "model":
        return models.run(tape, op);
      case "object":
        return callRoster(tape, op.key, op.work);
      case "scope":
        return scopes.run(tape, op, (inner) => runOp(tape, inner, whole));
      case "detached":
        return scopes.detach(tape, once, op);
      case "continue":
        return continueWith(tape, op, whole, run);
      case "tidy":
        return tidied(tape, () => runOps(tape, op.ops, whole));
      case "spend":
      case "put":
        return op.op === "put" ? put(tape, op.key) : spend(tape, op);
      case "fail":
        throw new Error("the program fails");
    }
  };
  const run = (tape: TapeContext, program: Program): Promise<unknown> => runOps(tape, program.ops, program);
  const once: Workflow<Program, unknown> = workflow("once", run);
  const thrice = workflow("thrice", run, { retry: { attempts: 3, base: "2s" } });
  return { once, thrice, limited: workflow("limited", run, { maxStall: trialStallMs }) };
}

function joined(
  tape: TapeContext,
  { op, branches }: Extract<Op, { op: "all" | "race" }>,
  runOps: (ops: readonly Op[]) => Promise<unknown[]>,
): Promise<unknown> {
  const running = branches.map(runOps);
  return op === "all" ? Promise.all(running) : tape.race(running);
}

async function tidied(tape: TapeContext, work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } finally {
    await tape.step("tidy", () => {});
  }
}

async function spawn(
  tape: TapeContext,
  workflow: Workflow<Program, unknown>,
  { ops, awaited }: Extract<Op, { op: "child" }>,
): Promise<unknown> {
  const child = await tape.spawn(workflow, { ops, attempts: 1 });
  return awaited ? child.result() : child.id;
}

async function callEffect(
  tape: TapeContext,
  effects: SimulatedEffects,
  { effect, args, caught }: Extract<Op, { op: "effect" }>,
): Promise<unknown> {
  const call = effects.named(effect).with(args);
  if (!caught) return tape.effect(call);
  const attempted = await tape.attempt(call);
  return attempted.status === "confirmed" ? attempted.value : attempted.reason;
}

const spend = (tape: TapeContext, op: Extract<Op, { op: "spend" }>): Promise<string> =>
  tape.budget.spend({ usd: op.usd }, async () => {
    await tape.sleep(op.ms); // the run may be cancelled, fail or crash before it is charged
    return { cost: { usd: op.cost }, value: "bought" };
  });

async function put(tape: TapeContext, key: string): Promise<number> {
  const found = await tape.values.get(key);
  return tape.values.put(key, tape.runId, found?.version ?? 0);
}

const step = (tape: TapeContext, fails: boolean): Promise<number> =>
  tape.step("step", () => {
    if (fails) throw new Error("a step failed");
    return tape.runId.length;
  });

/** Odd ones sleep until a date in the world's calendar. One computed from a wrong clock would be an hour away. */
const sleepFor = (tape: TapeContext, ms: number): Promise<void> =>
  ms % 2 === 0 ? tape.sleep(ms) : tape.sleepUntil(startWallMs + 3 * ms);
