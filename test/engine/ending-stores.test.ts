import { describe, expect } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { onBothStores } from "../kit/both-stores.ts";

const both = onBothStores();

describe.each(["inline", "outbox"] as const)("an %s effect that lost its response", (dispatch) => {
  both("is observed and compensated if its run is cancelled during the back-off", async (open) => {
    const ledger: string[] = [];
    const put = effect(
      "put",
      (_: null): string => {
        ledger.push("put");
        throw new Error("the connection broke");
      },
      {
        dispatch,
        semantics: "idempotent",
        retry: { attempts: 3, base: "1h", cap: "1h" },
        observe: () => outcome.confirmed("found"),
        compensate: (_args, result) => void ledger.push(`removed ${result}`),
      },
    );
    const caller = workflow("caller", () => put(null));
    const t = await open(createRunner({ workflows: [caller], effects: [put] }));
    const { time, tape, store } = t;
    await t.start(caller, null, { id: "run" });
    await t.elapse(1_000);
    const rows = () => time.during(store.read.effects(tape.tenant, { run: "run" }));
    expect(await rows()).toMatchObject([{ status: "PENDING", reason: "ack_lost", uncertain: true }]);
    await time.during(tape.cancel("run", { reason: "enough" }));
    expect(await t.settle()).toMatchObject([{ id: "run", status: "COMPENSATED", cause: "cancelled" }]);
    expect(await rows()).toMatchObject([{ status: "CONFIRMED", reason: "observed" }, { status: "COMPENSATED" }]);
    expect(ledger).toEqual(["put", "removed found"]);
  });
});
