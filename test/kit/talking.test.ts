import { strict as assert } from "node:assert";
import { describe, expect, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { callbackToken } from "../../src/model/callback-token.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { crashAtEveryBoundary } from "../../testkit/kit/crash.ts";
import { openBlank, openBlankStore } from "../blank-database.ts";

const add = gate<number, { total: number }>("add", { reply: true });

describe("talking to a run that crashes", () => {
  it("a request gets one reply, wherever the process crashes between note and reply", async () => {
    const once = workflow("once", async (tape) => {
      const request = await tape.gate(add);
      if (request.status !== "received") return "timeout";
      const total = await tape.step("price", () => request.value * 2);
      request.reply({ total });
      assert.throws(() => request.reply({ total: 0 }), /answered already/);
      return total;
    });
    const report = await crashAtEveryBoundary({
      workflow: once,
      input: null,
      modes: ["crash"],
      runner: createRunner({ workflows: [once] }),
      signals: [{ gate: add, value: 21 }],
      openStore: openBlankStore,
      check: async ({ store, tenant: of, run }) => {
        expect((await store.read.reply(of, run.id, 1))?.value).toEqual({ total: 42 });
        const records = await store.read.journal(of, { run: run.id });
        expect(records.filter(({ kind }) => kind === "reply.sent")).toHaveLength(1);
      },
    });
    expect(report.rounds).toBeGreaterThan(10);
    expect(report.statuses).toEqual({ COMPLETED: report.rounds });
  });

  it('a signal with times: "always" answers every gate of its name, once each', async () => {
    const go = gate<number>("go");
    const asks = workflow("asks", async (tape) => {
      const answers = [];
      for (let k = 0; k < 3; k++) answers.push((await tape.gate(go)).status);
      return answers;
    });
    const report = await crashAtEveryBoundary({
      workflow: asks,
      input: null,
      modes: ["crash"],
      runner: createRunner({ workflows: [asks] }),
      signals: [{ gate: go, value: 1, times: "always" }],
      openStore: openBlankStore,
      check: async ({ store, tenant: of, run }) => {
        expect(run.outcome).toEqual(["received", "received", "received"]);
        expect(await store.read.journal(of, { run: run.id }, { inbox: true })).toHaveLength(3);
      },
    });
    expect(report.rounds).toBeGreaterThan(10);
  });

  it("a callback reaches its run, wherever the process crashes", async () => {
    const calls = workflow("calls", async (tape) => {
      const hook = await tape.callback<number>("paid");
      tape.publish("form", hook.token.split(".").length);
      const [answer, beside] = await Promise.all([hook.result(), tape.step("beside", () => 1)]);
      return [answer, beside];
    });
    const report = await crashAtEveryBoundary({
      workflow: calls,
      input: null,
      modes: ["crash"],
      runner: createRunner({ workflows: [calls] }),
      signals: [{ gate: { name: "paid" }, value: 21 }],
      openStore: async (clock, random) => callingBack(await openStore("memory:", { clock, random, open: openBlank })),
      check: async ({ store, tenant: of, run }) => {
        expect(run.outcome).toEqual([{ status: "received", value: 21 }, 1]);
        expect((await store.read.published(of, run.id)).map(({ value }) => value)).toEqual([3]);
      },
    });
    expect(report.rounds).toBeGreaterThan(10);
    expect(report.statuses).toEqual({ COMPLETED: report.rounds });
  });
});

/** The kit sends a signal once a gate is open; on this store the signal is the call of its callback. */
function callingBack(store: Store): Store {
  const secrets = new Map<number, string>();
  return {
    ...store,
    claim: {
      ...store.claim,
      async callbackSecret(fence) {
        secrets.set(fence.journal, await store.claim.callbackSecret(fence));
        return secrets.get(fence.journal)!;
      },
    },
    intake: {
      ...store.intake,
      async signal(of, run, { value }) {
        const { journal } = (await store.read.run(of, run))!;
        const token = callbackToken(secrets.get(journal)!, { journal, pos: 0 });
        return { n: 1, ...(await store.intake.deliver(of, token, { value })) };
      },
    },
  };
}
