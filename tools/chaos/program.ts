import { systemClock } from "../../src/base/clock.ts";
import type { SingletonContext } from "../../src/host/singleton/term.ts";
import { isTapeError } from "../../src/model/errors.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import type { EffectCall } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, type Runner, type Workflow, workflow } from "../../src/sdk/workflow.ts";
import { type Connect, connectTo, type WorldEffects, worldEffects } from "./effects.ts";
import type { EffectArgs } from "./world.ts";

/** Options of a worker process, passed on its command line. */
export interface WorkerOptions {
  readonly url: string;
  /** Addresses of servers; empty: the worker opens the store. */
  readonly servers: readonly string[];
  readonly world: string;
  readonly worker: string;
  readonly ttlMs: number;
}

/** The input of every workflow here. */
export interface Task {
  readonly run: string;
  /** How long it sleeps, or how long its gate stays open. */
  readonly ms: number;
}

export const yes = gate<string>("yes");

export type Flow = Workflow<Task, unknown>;

/** Work for all five reactors: effects of each kind, sagas, sleeps, gates, children, retries. */
export function buildProgram(
  { world, worker }: Pick<WorkerOptions, "world" | "worker">,
  /** Called when an effect is about to be sent; the lease is not checked after that. */
  sending: () => void = () => {},
): {
  readonly runner: Runner;
  readonly flows: Readonly<Record<string, Flow>>;
} {
  const connect = connectTo(world, worker, sending);
  const { effects, connectors } = worldEffects(connect);
  const child = childFlow(effects);
  const flows = {
    ...effectFlows(effects),
    ...waitingFlows(effects),
    ...familyFlows(effects, child),
    retried: retriedFlow(effects, connect),
    spender: spendingFlow(effects),
  };
  const workflows = [...Object.values(flows), child];
  return { runner: createRunner({ workflows, effects: Object.values(effects), connectors }), flows };
}

/** Repeats an effect that did not happen, each time under a new key. */
async function untilConfirmed(tape: TapeContext, call: EffectCall<string>): Promise<string> {
  for (;;) {
    const result = await tape.attempt(call);
    if (result.status === "confirmed") return result.value;
  }
}

/** A mail that the judge finds in the ledger. */
const markWith =
  ({ mail }: WorldEffects) =>
  (tape: TapeContext, run: string, what: string, n: number, timerMs?: number): Promise<string> =>
    tape.effect(mail.with({ run, what, n, ...(timerMs === undefined ? {} : { timerMs }) }));

function effectFlows({ rate, quote, pay, wire, mail, post, book, reserve, rent, charge }: WorldEffects) {
  const payment = workflow("payment", async (tape, { run }: Task) => {
    const [, , paid] = [
      await tape.effect(rate.with({ run, what: "rate", n: 0 })),
      await tape.effect(quote.with({ run, what: "quote", n: 1 })),
      await untilConfirmed(tape, pay.with({ run, what: "pay", n: 2 })),
    ];
    const wired = await untilConfirmed(tape, wire.with({ run, what: "wire", n: 3 }));
    await Promise.all([
      tape.effect(mail.with({ run, what: "mail", n: 4 })),
      tape.effect(post.with({ run, what: "post", n: 5 })),
    ]);
    return [paid, wired];
  });

  const saga = workflow("saga", async (tape, { run }: Task) => {
    await untilConfirmed(tape, book.with({ run, what: "book", n: 1 }));
    await tape.effect(reserve.with({ run, what: "reserve", n: 2 }));
    await untilConfirmed(tape, rent.with({ run, what: "rent", n: 3 }));
    await untilConfirmed(tape, book.with({ run, what: "book", n: 4 }));
    await tape.effect(charge.with({ run, what: "charge", n: 5 }));
  });
  return { payment, saga };
}

function waitingFlows(effects: WorldEffects) {
  const mark = markWith(effects);
  const nap = workflow("nap", async (tape, { run, ms }: Task) => {
    await mark(tape, run, "before", 1, ms);
    await tape.sleep(ms);
    await mark(tape, run, "after", 2);
  });

  const late = workflow("late", async (tape, { run, ms }: Task) => {
    await mark(tape, run, "before", 1, ms);
    const { status } = await tape.gate(yes, { timeout: ms });
    await mark(tape, run, "after", 2);
    return status;
  });

  const approval = workflow("approval", async (tape, { run }: Task) => {
    const answer = await tape.gate(yes, { timeout: "30d" }); // longer than any clock is set forward
    await mark(tape, run, "after", 1);
    return answer.status === "received" ? answer.value : answer.status;
  });
  return { nap, late, approval };
}

const childFlow = ({ book, rent }: WorldEffects) =>
  workflow("child", async (tape, { run, ms }: Task) => {
    await untilConfirmed(tape, book.with({ run, what: "book", n: 1 }));
    await tape.sleep(ms);
    await untilConfirmed(tape, rent.with({ run, what: "rent", n: 2 }));
  });

function familyFlows({ charge }: WorldEffects, child: ReturnType<typeof childFlow>) {
  const parent = async (tape: TapeContext, { run, ms }: Task): Promise<void> => {
    const children = [];
    for (const k of [1, 2]) children.push(await tape.spawn(child, { run: `${run}/${k}`, ms }));
    await Promise.all(children.map((child) => child.result()));
  };
  const family = workflow("family", parent);
  const broken = workflow("broken", async (tape, task: Task) => {
    await parent(tape, task);
    await tape.effect(charge.with({ run: task.run, what: "charge", n: 5 }));
  });
  return { family, broken };
}

/** The first attempt of the step fails in whichever process makes it, so the whole run is retried. */
function retriedFlow(effects: WorldEffects, connect: Connect) {
  const mark = markWith(effects);
  return workflow(
    "retried",
    async (tape, { run }: Task) => {
      await mark(tape, run, "before", 1);
      await tape.step("try", async ({ abortSignal }) => {
        const fx = {
          ...{ effect: "try", runId: run, key: run, token: 0n, fence: tape.fence },
          ...{ attempt: 1, businessKey: undefined, abortSignal },
        };
        await connect("try", "try").dispatch({ run, what: "try", n: 0 }, fx);
      });
      await mark(tape, run, "after", 2);
    },
    { retry: { attempts: 5, base: "100ms" } },
  );
}

/** Five concurrent purchases under a budget for three: exactly three succeed, whichever process dies in between. */
function spendingFlow(effects: WorldEffects) {
  const mark = markWith(effects);
  return workflow("spender", async (tape, { run }: Task) => {
    const buy = async (n: number): Promise<"bought" | "refused"> => {
      try {
        return await tape.budget.spend({ usd: 1 }, async () => {
          await systemClock.sleep(20 * n);
          return { cost: { usd: 1 }, value: "bought" as const };
        });
      } catch (error) {
        if (isTapeError(error, "TAPE_BUDGET_EXCEEDED")) return "refused";
        throw error;
      }
    };
    const results = await Promise.all([1, 2, 3, 4, 5].map(buy));
    await mark(tape, run, "after", 1);
    return results.filter((result) => result === "bought").length;
  });
}

/** Budget of each run of a flow. */
export const budgets: Readonly<Record<string, Readonly<Record<string, number>>>> = { spender: { usd: 3 } };

/**
 * The body of the singleton: sends requests to the world in a loop. Every other request goes out without checking the
 * lease, as from a body that ignores its abort signal: then only the world's guard can reject a stale holder.
 */
export function sweeper({ world, worker }: Pick<WorkerOptions, "world" | "worker">) {
  return async ({ abortSignal, assert, progress, token, sleep }: SingletonContext): Promise<void> => {
    for (let n = 1; !abortSignal.aborted; n++) {
      if (n % 2 === 0) assert();
      await fetch(`${world}singleton/sweeper`, {
        method: "POST",
        headers: { "idempotency-key": "sweeper", "tape-fencing-token": String(token), "x-worker": worker },
        body: JSON.stringify({ run: "sweeper", what: "sweep", n } satisfies EffectArgs),
      });
      progress(`sweep ${n}`);
      if (n % 2 === 0) await sleep(200);
    }
  };
}
