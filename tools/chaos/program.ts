import { systemClock } from "../../src/base/clock.ts";
import { httpConnector } from "../../src/connector/http/connector.ts";
import type { SingletonContext } from "../../src/host/singleton/term.ts";
import { isTapeError } from "../../src/model/errors.ts";
import type { Connector, ConnectorContext } from "../../src/sdk/connector.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { type Effect, type EffectCall, type EffectContext, effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, type Runner, type Workflow, workflow } from "../../src/sdk/workflow.ts";
import type { Ask } from "./world.ts";

/** What a worker process is told on its command line. */
export interface Orders {
  readonly url: string;
  /** Addresses of servers; none: the store is opened. */
  readonly servers: readonly string[];
  readonly world: string;
  readonly worker: string;
  readonly ttlMs: number;
}

/** The input of every workflow here. */
export interface Task {
  readonly run: string;
  /** How long it sleeps, or how long its gate stands open. */
  readonly ms: number;
}

export const yes = gate<string>("yes");

/** A request is given up after so long; the look that follows settles it. */
const timeout = "2s";
const retry = { attempts: 20, base: "50ms", cap: "500ms" } as const;
/** The other side refuses lower tokens once it was looked at, so absence needs no delay. */
const settle = 0;

type What = Effect<Ask, string>;
export type Flow = Workflow<Task, unknown>;

/** Everything that the five reactors have to do with: acts of each kind, sagas, sleeps, gates, children, retries. */
export function buildProgram(
  { world, worker }: Pick<Orders, "world" | "worker">,
  /** Called when an act is about to be sent: nothing looks at the lease any more. */
  sending: () => void = () => {},
): {
  readonly runner: Runner;
  readonly flows: Readonly<Record<string, Flow>>;
} {
  const to = (name: string, verb: string): Connector => {
    const look = {
      request: (ask: Ask) => ({ url: `look/${name}`, body: ask }),
      read: ({ status, body }: { status: number; body: unknown }) =>
        status === 200
          ? outcome.confirmed(String(body))
          : status === 404
            ? outcome.absent({ final: true })
            : outcome.inconclusive(`status ${status}`),
    };
    return httpConnector(name, {
      url: world,
      allow: ["127.0.0.1"],
      headers: { "x-worker": worker },
      request: (ask: Ask) => {
        sending();
        return { url: `${verb}/${name}`, body: ask };
      },
      observe: look,
    });
  };
  const told =
    (name: string) =>
    (fx: EffectContext): ConnectorContext => ({ ...fx, effect: name });
  const businessKey = (ask: Ask): string => `${ask.run}/${ask.what}${ask.n}`;

  /** The same act twice over: by the driver, and by the outbox through a registered connector. */
  const connectors: Connector[] = [];
  const inline = (
    name: string,
    verb: string,
    semantics: "non_idempotent" | "idempotent" | "read",
    undo?: "do" | "once",
  ): What => {
    const way = to(name, verb);
    const fx = told(name);
    const looks =
      semantics === "non_idempotent"
        ? { businessKey, observe: (ask: Ask, at: EffectContext) => way.observe!(ask, fx(at)) as never }
        : {};
    return effect<Ask, string>(name, async (ask, at) => String(await way.dispatch(ask, fx(at))), {
      semantics,
      timeout,
      retry,
      settleDelay: settle,
      ...looks,
      ...(undo === undefined ? {} : { compensate: inverse(`un${name}`, undo) }),
    });
  };
  const outbox = (
    name: string,
    verb: string,
    semantics: "non_idempotent" | "idempotent" | "read",
    undo?: "do" | "once",
  ): What => {
    connectors.push(to(name, verb));
    return effect<Ask, string>(name, {
      connector: name,
      semantics,
      timeout,
      retry,
      settleDelay: settle,
      ...(semantics === "non_idempotent" ? { businessKey } : {}),
      ...(undo === undefined ? {} : { compensate: inverse(`un${name}`, undo) }),
    });
  };
  function inverse(name: string, verb: "do" | "once") {
    const way = to(name, verb);
    const fx = told(name);
    return {
      semantics: verb === "do" ? ("non_idempotent" as const) : ("idempotent" as const),
      run: (ask: Ask, _result: string, at: EffectContext) => way.dispatch(ask, fx(at)),
      observe: ({ args }: { args: Ask }, at: EffectContext) => way.observe!(args, fx(at)),
    };
  }

  const pay = inline("pay", "do", "non_idempotent");
  const mail = inline("mail", "once", "idempotent");
  const rate = inline("rate", "read", "read");
  const wire = outbox("wire", "do", "non_idempotent");
  const post = outbox("post", "once", "idempotent");
  const quote = outbox("quote", "read", "read");
  const book = inline("book", "do", "non_idempotent", "do");
  const reserve = outbox("reserve", "once", "idempotent", "once");
  const rent = outbox("rent", "do", "non_idempotent", "do");
  const charge = inline("charge", "no", "idempotent");

  /** What surely did not happen is decided anew, under a new key. */
  const surely = async (tape: TapeContext, act: EffectCall<string>): Promise<string> => {
    for (;;) {
      const came = await tape.attempt(act);
      if (came.status === "confirmed") return came.value;
    }
  };

  const acts = workflow("acts", async (tape, { run }: Task) => {
    const [, , paid] = [
      await tape.effect(rate.with({ run, what: "rate", n: 0 })),
      await tape.effect(quote.with({ run, what: "quote", n: 1 })),
      await surely(tape, pay.with({ run, what: "pay", n: 2 })),
    ];
    const wired = await surely(tape, wire.with({ run, what: "wire", n: 3 }));
    await Promise.all([
      tape.effect(mail.with({ run, what: "mail", n: 4 })),
      tape.effect(post.with({ run, what: "post", n: 5 })),
    ]);
    return [paid, wired];
  });

  const saga = workflow("saga", async (tape, { run }: Task) => {
    await surely(tape, book.with({ run, what: "book", n: 1 }));
    await tape.effect(reserve.with({ run, what: "reserve", n: 2 }));
    await surely(tape, rent.with({ run, what: "rent", n: 3 }));
    await surely(tape, book.with({ run, what: "book", n: 4 }));
    await tape.effect(charge.with({ run, what: "charge", n: 5 }));
  });

  const mark = (tape: TapeContext, run: string, what: string, n: number, timerMs?: number): Promise<string> =>
    tape.effect(mail.with({ run, what, n, ...(timerMs === undefined ? {} : { timerMs }) }));

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

  const asked = workflow("asked", async (tape, { run }: Task) => {
    const answer = await tape.gate(yes, { timeout: "30d" }); // longer than any clock is set forward
    await mark(tape, run, "after", 1);
    return answer.status === "received" ? answer.value : answer.status;
  });

  const child = workflow("child", async (tape, { run, ms }: Task) => {
    await surely(tape, book.with({ run, what: "book", n: 1 }));
    await tape.sleep(ms);
    await surely(tape, rent.with({ run, what: "rent", n: 2 }));
  });

  const parent = async (tape: TapeContext, { run, ms }: Task): Promise<void> => {
    const children = [];
    for (const k of [1, 2]) children.push(await tape.spawn(child, { run: `${run}/${k}`, ms }));
    await Promise.all(children.map((one) => one.result()));
  };
  const family = workflow("family", parent);
  const broken = workflow("broken", async (tape, task: Task) => {
    await parent(tape, task);
    await tape.effect(charge.with({ run: task.run, what: "charge", n: 5 }));
  });

  /** The first try of a run's step goes wrong, whoever makes it: the run is retried as a whole. */
  const again = workflow(
    "again",
    async (tape, { run }: Task) => {
      await mark(tape, run, "before", 1);
      await tape.step("try", async ({ abortSignal }) => {
        const asks = {
          effect: "try",
          runId: run,
          key: run,
          token: 0n,
          fence: tape.fence,
          attempt: 1,
          businessKey: undefined,
          abortSignal,
        };
        await to("try", "try").dispatch({ run, what: "try", n: 0 }, asks);
      });
      await mark(tape, run, "after", 2);
    },
    { retry: { attempts: 5, base: "100ms" } },
  );

  /** Five ask at once for what is enough for three: three get it, whoever dies in between. */
  const spender = workflow("spender", async (tape, { run }: Task) => {
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
    const came = await Promise.all([1, 2, 3, 4, 5].map(buy));
    await mark(tape, run, "after", 1);
    return came.filter((one) => one === "bought").length;
  });

  const flows = { acts, saga, nap, late, asked, family, broken, again, spender };
  const effects = [pay, mail, rate, wire, post, quote, book, reserve, rent, charge];
  return { runner: createRunner({ workflows: [...Object.values(flows), child], effects, connectors }), flows };
}

/** What the runs of a flow may spend. */
export const budgets: Readonly<Record<string, Readonly<Record<string, number>>>> = { spender: { usd: 3 } };

/**
 * The body of the singleton: acts on the world again and again. Every other act goes out without a look at the lease, as
 * from a body that ignores its signal: then the world's guard alone is between a stale holder and the deed.
 */
export function sweeper({ world, worker }: Pick<Orders, "world" | "worker">) {
  return async ({ abortSignal, assert, progress, token, sleep }: SingletonContext): Promise<void> => {
    for (let n = 1; !abortSignal.aborted; n++) {
      if (n % 2 === 0) assert();
      await fetch(`${world}lead/sweeper`, {
        method: "POST",
        headers: { "idempotency-key": "sweeper", "tape-fencing-token": String(token), "x-worker": worker },
        body: JSON.stringify({ run: "sweeper", what: "sweep", n } satisfies Ask),
      });
      progress(`sweep ${n}`);
      if (n % 2 === 0) await sleep(200);
    }
  };
}
