import type { DatabaseSync } from "node:sqlite";
import { expect } from "vitest";
import type { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { AckLost, DefiniteFailure } from "../../src/sdk/outcomes.ts";
import type { Schema } from "../../src/sdk/schema.ts";
import { stream } from "../../src/sdk/stream.ts";
import type { AnyWorkflow } from "../../src/sdk/workflow.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";

/** A word for each way in which a payload enters the store. */
export const canaries = [
  ...["app-value", "args", "business-key", "chunk", "child-input", "child-result", "debounce-key", "debounced"],
  ...["decision", "effect-error", "failure", "fault", "input", "lost", "outbox", "payload", "published", "rationale"],
  ...["reply", "request", "request-sent", "resolved", "response", "result", "sample", "schedule", "signal"],
  ...["start-signal", "step", "step-error", "transaction", "unique", "value"],
] as const;

const word = (name: (typeof canaries)[number]): string => `CANARY-${name}-7f3a`;

/** The canaries in a text. */
export const found = (text: string): string[] => canaries.filter((name) => text.includes(word(name)));

const refusing: Schema<{ ok?: boolean }> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => {
      const { ok } = value as { ok?: boolean };
      return ok === true ? { value: { ok } } : { issues: [{ message: `${word("fault")} is not ok` }] };
    },
  },
};

/** One run of everything that has payloads. `db`: a connection to the store's own file; undefined: no transactions. */
export function scenario(db?: DatabaseSync) {
  const approve = gate<{ word: string }>("approve");
  const add = gate<{ word: string }, string>("add", { reply: true });
  const checked = gate("checked");
  const tokens = stream<string>("tokens");
  const pay = effect<{ word: string }, string>("pay", ({ word: args }) => `${args} ${word("result")}`, {
    semantics: "idempotent",
    businessKey: () => word("business-key"),
    compensate: () => {},
  });
  const refuse = effect<string, void>(
    "refuse",
    () => {
      throw new DefiniteFailure(word("effect-error"));
    },
    { semantics: "idempotent" },
  );
  const later = effect<string, string>("later", (args) => args, { semantics: "idempotent", dispatch: "outbox" });
  const lose = effect<string, string>(
    "lose",
    () => {
      throw new AckLost(word("lost"));
    },
    { semantics: "non_idempotent", allowUnsafe: "a test" },
  );
  const child = workflow("child", (_tape, input: string) => `${input} ${word("child-result")}`);
  const everything = workflow("everything", async (tape, input: { word: string }) => {
    const step = await tape.step("step", () => ({ word: word("step") }));
    await tape.step(
      "retried",
      ({ attempt }) => {
        if (attempt === 1) throw new Error(word("step-error"));
      },
      { retry: { attempts: 2, base: 1 } },
    );
    await tape.decide("decide", (decision) => {
      decision.record({
        model: "m",
        request: word("request"),
        response: word("response"),
        rationale: word("rationale"),
      });
      return word("decision");
    });
    await tape.sample("sample", () => word("sample"));
    await tape.step("speak", async (context) => context.stream(tokens).write(word("chunk")));
    tape.publish("state", word("published"));
    await tape.values.put("mine", word("value"), 0);
    if (db !== undefined) await tape.transaction("own", db, () => word("transaction"));
    await tape.call(child, word("child-input"));
    await tape.effect(refuse.with("x")).catch(() => {});
    await tape.effect(later.with(word("outbox")));
    const call = pay.with({ word: word("args") });
    const answer = await tape.gate(approve, { payload: { word: word("payload") }, binds: call });
    await tape.effect(call);
    const sent = await tape.gate(add);
    if (sent.status !== "received" || answer.status !== "received") throw new Error("no answer");
    await sent.reply(`${sent.value.word} ${word("reply")}`);
    await tape.gate({ ...checked, schema: refusing });
    return [input.word, step.word, answer.value.word];
  });
  const failing = workflow("failing", async (tape) => {
    await tape.effect(pay.with({ word: "again" })).catch(() => {});
    throw new Error(word("failure"));
  });
  const losing = workflow("losing", (tape) => tape.effect(lose.with("x")));
  const waiting = workflow("waiting", async (tape, _input: string) => {
    const answer = await tape.gate(approve);
    return answer.status === "received" ? answer.value.word : "";
  });
  const workflows = [child, everything, failing, losing, waiting] as unknown as AnyWorkflow[];
  const runner = createRunner({ workflows, effects: [pay, refuse, later, lose] as never });

  const play = async (app: Tape) => {
    await app.store.intake.putValue(app.tenant, "theirs", word("app-value"), "must_create");
    await app.schedules.create("nightly", waiting, word("schedule"), { cron: "0 3 1 1 *" });
    await app.start(waiting, word("debounced"), { id: "d", debounce: { key: word("debounce-key"), wait: "1h" } });
    const started = await app.start(waiting, "x", {
      id: "w",
      unique: { key: word("unique"), onConflict: "join" },
      signals: [{ gate: approve, value: { word: word("start-signal") } }],
    });
    const main = await app.start(everything, { word: word("input") }, { id: "main" });
    await expect.poll(() => app.gates.list({ run: "main" }), { timeout: 10_000 }).toHaveLength(1);
    const [open] = await app.gates.list({ run: "main" });
    await app.signal("main", approve, { word: word("signal") }, { binds: open!.binds, mustMatch: true });
    const reply = await app.ask("main", add, { word: word("request-sent") });
    await app.signal("main", checked, { bad: word("fault") });
    await app.signal("main", checked, { ok: true });
    const results = await main.result();
    const failure = await (await app.start(failing, undefined, { id: "failing" })).result().catch(String);
    await app.start(losing, undefined, { id: "losing" });
    const status = async () => (await app.store.read.run(app.tenant, "losing"))?.status;
    await expect.poll(status, { timeout: 10_000 }).toBe("STUCK");
    const resolution = { as: "confirmed", value: word("resolved") } as const;
    await app.resolve({ run: "losing", pos: 0, resolution, by: "ada", reason: "seen" });
    await expect.poll(status, { timeout: 10_000 }).toBe("COMPLETED");
    const lost = await (await app.run("losing")).result();
    const values = [results, reply, await started.result(), failure, lost, (await app.schedules.list())[0]?.input];
    return { read: found(JSON.stringify(values)), results: Array.isArray(results) ? "read" : results };
  };
  return { runner, play };
}
