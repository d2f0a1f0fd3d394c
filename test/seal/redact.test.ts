import { describe, expect, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { DefiniteFailure } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { RedactPayload } from "../../src/seal/payload-codec.ts";
import { testCodec } from "./codec.ts";

const card = "4111-1111";
const masked = "****";

/** Masks card numbers wherever they stand, in errors too. */
const redact: RedactPayload = (payload) => {
  if (payload instanceof Error) return new Error(payload.message.replaceAll(card, masked));
  return JSON.parse(JSON.stringify(payload ?? null).replaceAll(card, masked)) as unknown;
};

const go = gate<string>("go");
const sent: string[] = [];
const pay = effect<{ card: string }, string>("pay", (args) => `${sent.push(args.card)} ${card}`, {
  semantics: "idempotent",
});
const refuse = effect<string, string>(
  "refuse",
  () => {
    throw new DefiniteFailure(`no credit on ${card}`);
  },
  { semantics: "idempotent" },
);
const seen: unknown[][] = [];
const flow = workflow("flow", async (tape, input: { card: string }) => {
  const parts: unknown[] = [input.card];
  parts.push(await tape.step("step", () => `charge ${card}`));
  parts.push(await tape.decide("decide", () => card), await tape.sample("sample", () => card));
  parts.push(await tape.step("fail", () => Promise.reject(new Error(card))).catch(String));
  parts.push(await tape.effect(pay.with({ card })), (await tape.attempt(refuse.with("x"))).status);
  const refused = await tape.attempt(refuse.with("y"));
  parts.push(refused.status === "failed" ? String(refused.error) : "");
  seen.push(parts);
  const answer = await tape.gate(go);
  return [...parts, answer.status === "received" ? answer.value : ""];
});
const runner = createRunner({ workflows: [flow], effects: [pay, refuse] });

describe("a redaction", () => {
  it.each([
    ["without a codec", {}],
    ["before a codec", { codec: testCodec() }],
  ])("%s: the code receives what is recorded, now and on replay", async (_what, options) => {
    const store = await openStore("memory:");
    seen.length = sent.length = 0;
    const open = () => Tape.open({ store, runner, redact, log: "silent", ...options });
    const first = await open();
    const run = await first.start(flow, { card }, { id: "r" });
    await expect.poll(async () => (await store.read.run("default", "r"))?.status).toBe("WAITING");
    await first.close();
    await using second = await open();
    await second.signal("r", go, card);
    const result = await (await second.run("r")).result();
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(seen[0]);
    expect(JSON.stringify(seen)).not.toContain(card);
    expect(JSON.stringify(result)).not.toContain(card);
    expect(JSON.stringify(result)).toContain(masked);
    expect(sent).toEqual([card]); // the upstream gets what the code has passed
    const records = [...(await store.read.journal("default", { run: "r" }))];
    records.push(...(await store.read.journal("default", { run: "r" }, { inbox: true })));
    expect(JSON.stringify(records.map(({ data }) => data))).not.toContain(card);
    expect(run.id).toBe("r");
    await second.close();
    await store.close();
  });

  it("receives the kind and the field, and must be a function", async () => {
    const store = await openStore("memory:");
    const fields = new Set<string>();
    const watching: RedactPayload = (payload, { kind, field, run }) => {
      fields.add(`${kind} ${field} ${run}`);
      return payload;
    };
    await using app = await Tape.open({ store, runner, redact: watching, log: "silent" });
    await app.start(flow, { card }, { id: "r" });
    await expect.poll(async () => (await store.read.run("default", "r"))?.status).toBe("WAITING");
    expect([...fields]).toEqual(
      expect.arrayContaining([
        "run.created input r",
        "step.done value r",
        "step.done error r",
        "effect.intended args r",
      ]),
    );
    await expect(Tape.open({ store, runner, redact: "all" as never })).rejects.toMatchObject({
      code: "TAPE_BAD_INPUT",
    });
    await app.close();
    await store.close();
  });
});
