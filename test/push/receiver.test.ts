import { describe, expect, it } from "vitest";
import { z } from "zod";
import { TapeError } from "../../src/model/errors.ts";
import { type EventAction, type ReceiverOptions, receiver } from "../../src/push/receiver.ts";
import { unverified } from "../../src/push/verify/secret.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { onEachStore, pushStage } from "./stage.ts";

const paid = gate<{ amount: number }>("paid");
const ship = workflow("ship", async (tape, input: { order: string }) => {
  const answer = await tape.gate(paid);
  return `${input.order} for ${answer.status === "received" ? answer.value.amount : "nothing"}`;
});
const strict = workflow("strict", async (_tape, input: { order: string }) => input.order, {
  input: z.object({ order: z.string() }),
});
const runner = createRunner({ workflows: [ship, strict] });

const verify = unverified("a test");
const deliver = (id: string | undefined, type: string, data: unknown, source = "/shop"): Request => {
  const event = { specversion: "1.0", ...(id !== undefined && { id }), source, type, data };
  const headers = { "content-type": "application/cloudevents+json" };
  return new Request("http://x.invalid/", { method: "POST", headers, body: JSON.stringify(event) });
};

const map: ReceiverOptions["map"] = ({ type, data }): EventAction | undefined => {
  const { order, amount } = data as { order: string; amount: number };
  if (type === "order.placed") return { start: ship, input: { order }, id: `ship-${order}` };
  if (type === "order.paid") return { signal: paid, run: `ship-${order}`, value: { amount } };
  return type === "order.strict" ? { start: strict, input: data } : undefined;
};

describe("receiver", () => {
  onEachStore("starts one run and sends one signal for an event, however often it is delivered", async (stage) => {
    const app = await stage.app(runner);
    const inbox = receiver(app, { verify, map, log: stage.log });
    const statuses: number[] = [];
    for (let k = 0; k < 3; k++) statuses.push((await inbox(deliver("e1", "order.placed", { order: "7" }))).status);
    for (let k = 0; k < 3; k++) {
      statuses.push((await inbox(deliver("e2", "order.paid", { order: "7", amount: 5 }))).status);
    }
    expect(statuses).toEqual([204, 204, 204, 204, 204, 204]);
    expect((await app.runs.list()).map(({ id }) => id)).toEqual(["ship-7"]);
    await app.react("recovery");
    expect(await (await app.run("ship-7")).result()).toBe("7 for 5");
  });

  it("names the run after source and id of the event, so that two senders do not collide", async () => {
    const stage = await pushStage();
    const app = await stage.app(runner);
    const inbox = receiver(app, { verify, map, log: stage.log });
    await inbox(deliver("e1", "order.strict", { order: "1" }));
    await inbox(deliver("e1", "order.strict", { order: "2" }, "/other"));
    const ids = (await app.runs.list()).map(({ id }) => id).toSorted();
    expect(ids).toEqual([
      expect.stringMatching(/^evt-[0-9a-f]{16}-e1$/),
      expect.stringMatching(/^evt-[0-9a-f]{16}-e1$/),
    ]);
    expect(new Set(ids).size).toBe(2);
  });

  it("a redelivery after the run was pruned is 204 and starts nothing", async () => {
    const stage = await pushStage();
    const gone = {
      start: async () => Promise.reject(new TapeError("TAPE_RUN_GONE", "pruned")),
      signal: async () => {},
    };
    expect(
      (await receiver(gone, { verify, map, log: stage.log })(deliver("e1", "order.placed", { order: "1" }))).status,
    ).toBe(204);
    expect(stage.lines).toEqual([]);
  });

  it("409 for other input under the same id; 422 for what no repetition can mend; 204 for what is ignored", async () => {
    const stage = await pushStage();
    const app = await stage.app(runner);
    const inbox = receiver(app, { verify, map, log: stage.log });
    const other = receiver(app, {
      verify,
      log: stage.log,
      map: () => ({ start: ship, input: { order: "x" }, id: "ship-1" }),
    });
    expect((await inbox(deliver("e1", "order.placed", { order: "1" }))).status).toBe(204);
    expect((await other(deliver("e9", "order.placed", { order: "1" }))).status).toBe(409);
    expect((await inbox(deliver("e3", "order.strict", { order: 5 }))).status).toBe(422);
    expect((await inbox(deliver(undefined, "order.strict", { order: "5" }))).status).toBe(422);
    expect((await inbox(deliver("e4", "order.paid", { order: "none", amount: 1 }))).status).toBe(422);
    expect((await inbox(new Request("http://x.invalid/", { method: "POST", body: "hello" }))).status).toBe(422);
    expect((await inbox(deliver("e5", "order.ignored", {}))).status).toBe(204);
  });

  it("503 while the store is away, 500 if the program's own map throws", async () => {
    const away = {
      start: async () => Promise.reject(new TapeError("TAPE_STORE_UNREACHABLE", "x")),
      signal: async () => {},
    };
    const log = (): void => {};
    const event = () => deliver("e1", "order.placed", { order: "1" });
    expect((await receiver(away, { verify, map, log })(event())).status).toBe(503);
    const broken: ReceiverOptions["map"] = () => {
      throw new Error("a bug");
    };
    expect((await receiver(away, { verify, map: broken, log })(event())).status).toBe(500);
  });

  it("takes bodies up to 1 MiB, and cannot be made without verify or map", async () => {
    const app = { start: async () => {}, signal: async () => {} };
    const large = deliver("e1", "order.ignored", "x".repeat(1_048_600));
    expect((await receiver(app, { verify, map, log: () => {} })(large)).status).toBe(413);
    expect(() => receiver(app, { map } as never)).toThrow("TAPE_UNVERIFIED");
    expect(() => receiver(app, { verify } as never)).toThrow("map must be a function");
  });
});
