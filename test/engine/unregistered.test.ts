import { describe, expect } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { AckLost, outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { onBothStores } from "../kit/both-stores.ts";

const both = onBothStores();

describe("an effect that is missing from the runner", () => {
  for (const dispatch of ["inline", "outbox"] as const) {
    both(`${dispatch}: is observed after a lost response, compensated, and logged once`, async (open) => {
      const compensated: string[] = [];
      const logged: string[] = [];
      const wire = effect("wire", (_: string) => Promise.reject(new AckLost()), {
        dispatch,
        businessKey: (key) => key,
        observe: (key) => outcome.confirmed(`seen ${key}`),
        compensate: (key, result) => void compensated.push(`${key} ${result}`),
      });
      const pay = workflow("pay", async (_tape, key: string) => {
        await wire(key);
        throw new Error("on purpose");
      });
      const log = (level: string, event: string, fields: Record<string, unknown> = {}): void => {
        if (level === "warn") logged.push(`${event} ${fields.effect} ${fields.next}`);
      };
      const t = await open(createRunner({ workflows: [pay] }), { log });
      await t.start(pay, "a", { id: "a" });
      await t.start(pay, "b", { id: "b" });
      const runs = await t.settle();
      expect(runs.map(({ status }) => status)).toEqual(["COMPENSATED", "COMPENSATED"]);
      expect(compensated.toSorted()).toEqual(["a seen a", "b seen b"]);
      const warned = logged.filter((line) => line.startsWith("effect.unregistered"));
      expect(warned).toEqual([expect.stringContaining("wire add it to createRunner({ effects: [...] })")]);
    });
  }
});
