import { describe, expect, it } from "vitest";
import { TapeError } from "../../src/model/errors.ts";
import { type Effect, type EffectContext, effect } from "../../src/sdk/effect.ts";
import { AckLost, NotSent, outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { onBothStores } from "../kit/both-stores.ts";

const both = onBothStores();
const ways = ["inline", "outbox"] as const;

/** A call that never returns. */
const neverReturns = (count: () => void): Promise<never> => {
  count();
  return new Promise(() => {});
};
const sending = (mail: Effect<null, unknown>) => {
  const send = workflow("send", (tape) => tape.attempt(mail.with(null)));
  return { send, runner: createRunner({ workflows: [send], effects: [mail] }) };
};

describe("retry.attempts bounds the calls of an idempotent effect", () => {
  for (const [dispatch, attempts] of [["inline", 2] as const, ["inline", 7] as const, ["outbox", 2] as const]) {
    both(`${dispatch}, ${attempts}: STUCK with the last error, the reconciler's calls included`, async (open) => {
      let calls = 0;
      const body = () => Promise.reject(new AckLost(`no answer to call ${++calls}`));
      const retry = { attempts, base: "100ms" } as const;
      const { send, runner } = sending(effect("mail", body, { semantics: "idempotent", dispatch, retry }));
      const t = await open(runner);
      const run = await t.start(send, undefined, { id: "r" });
      expect(await t.settle()).toMatchObject([{ status: "STUCK" }]);
      expect(calls).toBe(attempts);
      const error = await t.time.during(run.result().catch((thrown: Error) => thrown));
      expect(String(error)).toContain(`exhausted; the last attempt failed with: no answer to call ${attempts}`);
      // An operator's retry gives it the same number of attempts again.
      const resolution = { as: "retry" } as const;
      await t.time.during(t.tape.resolve({ run: "r", pos: 0, resolution, by: "ada", reason: "they are back" }));
      await t.elapse(2_000);
      expect(await t.settle()).toMatchObject([{ status: "STUCK" }]);
      expect(calls).toBe(2 * attempts);
    });
  }

  it.each(ways)("%s: an effect that never returns is started that often and no more", async (dispatch) => {
    let calls = 0;
    const retry = { attempts: 2, base: "1s" } as const;
    const options = { semantics: "idempotent", dispatch, timeout: "2s", retry } as const;
    const { send, runner } = sending(effect("hang", () => neverReturns(() => calls++), options));
    await using t = await VirtualTape.open({ runner });
    await t.start(send, undefined, { id: "r" });
    expect(await t.settle()).toMatchObject([{ status: "STUCK" }]);
    await t.elapse(60_000);
    expect(calls).toBe(2);
  });

  it.each(ways)("%s: an effect that is observed to be absent fails when no attempt is left", async (dispatch) => {
    let calls = 0;
    const body = () => Promise.reject(new AckLost(`no answer ${++calls}`));
    const retry = { attempts: 3, base: "1s" } as const;
    const observe = () => outcome.absent();
    const { send, runner } = sending(effect("mail", body, { semantics: "idempotent", dispatch, observe, retry }));
    await using t = await VirtualTape.open({ runner });
    const run = await t.start(send, undefined, { id: "r" });
    expect(await t.result(run)).toMatchObject({ status: "failed", reason: "ABSENT" });
    expect(calls).toBe(3);
  });

  it.each(ways)("%s: errors of other leases that the body throws count, and are in the reason", async (dispatch) => {
    for (const wrap of [(error: Error) => error, (cause: Error) => new NotSent("not yet", { cause })]) {
      let calls = 0;
      const body = () => Promise.reject(wrap(new TapeError("TAPE_LEASE_LOST", `the desk is taken, call ${++calls}`)));
      const retry = { attempts: 2, base: "100ms", cap: "100ms" } as const;
      const { send, runner } = sending(effect("mail", body, { semantics: "idempotent", dispatch, retry }));
      await using t = await VirtualTape.open({ runner });
      const run = await t.start(send, undefined, { id: "r" });
      await t.elapse(30_000);
      const ended = await t.settle();
      const result = await t.time.during(run.result().catch((thrown: Error) => thrown));
      // Nothing was sent in the second case, so that the effect fails; twenty of its attempts pass for interruptions.
      const [status, total] = calls > 2 ? (["COMPLETED", 22] as const) : (["STUCK", 2] as const);
      expect(ended).toMatchObject([{ status }]);
      expect(calls).toBe(total);
      if (status === "STUCK") expect(String(result)).toContain("the desk is taken, call 2");
      else expect(result).toMatchObject({ status: "failed", reason: "not_sent" });
    }
  });

  it.each(ways)("%s: the default retries outlast an outage of minutes", async (dispatch) => {
    let calls = 0;
    let down = true;
    const body = (): unknown => {
      calls++;
      return down ? Promise.reject(new AckLost()) : "sent";
    };
    const { send, runner } = sending(effect("mail", body, { semantics: "idempotent", dispatch }));
    await using t = await VirtualTape.open({ runner });
    const run = await t.start(send, undefined, { id: "r" });
    await t.elapse(100_000);
    down = false;
    expect(await t.result(run)).toMatchObject({ value: "sent" });
    expect(calls).toBeLessThanOrEqual(10);
  });
});

describe("an effect that was provably not sent", () => {
  for (const lost of [1, 3, 4]) {
    const times = lost === 1 ? "once" : `${lost} times`;
    const ends = lost > 3 ? "fails, and is compensated" : "completes, and nothing is compensated";
    both(`a mail whose answer was lost ${times}: the order ${ends}`, async (open) => {
      const log: string[] = [];
      const charge = effect("charge", () => void log.push("charge"), { compensate: () => void log.push("refund") });
      let left = lost;
      const body = (_: string, { attempt, key, businessKey }: EffectContext) => {
        if (left-- > 0) return Promise.reject(new AckLost());
        log.push(`mail ${attempt} ${key} ${businessKey}`);
        return "sent";
      };
      const mail = effect("mail", body, {
        businessKey: (order) => order,
        observe: () => outcome.absent(),
        settleDelay: "1s",
        timeout: "1s",
        retry: { base: "100ms" },
      });
      const order = workflow("order", async (_, id: string) => {
        await charge(undefined as never);
        return mail(id);
      });
      const t = await open(createRunner({ workflows: [order], effects: [charge, mail] }));
      await t.start(order, "o-1", { id: "r" });
      await t.elapse(120_000);
      const [run] = await t.settle();
      const sent = `mail ${lost + 1} r:1 o-1`;
      expect([run?.status, log]).toEqual(
        lost > 3 ? ["COMPENSATED", ["charge", "refund"]] : ["COMPLETED", ["charge", sent]],
      );
    });
  }
});
