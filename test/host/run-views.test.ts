import { expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { testCodec } from "../seal/codec.ts";

const note = effect("note", async (n: number) => n, { semantics: "idempotent" });
const count = workflow("count", async (tape, to: number) => {
  for (let n = 1; n <= to; n++) await tape.effect(note.with(n));
  return to;
});
const fails = workflow("fails", async () => {
  throw Object.assign(new Error("card expired"), { code: "CARD_EXPIRED" });
});
const runner = createRunner({ workflows: [count, fails], effects: [note] });

it("a failed run shows its error, also where only a process with the key can read it", async () => {
  const store = await openStore("memory:");
  onTestFinished(() => store.close());
  const options = { store, runner, log: "silent", leaseTtl: "2s" } as const;
  const plain = await Tape.open({ ...options, work: false });
  const app = await Tape.open({ ...options, codec: testCodec() });
  onTestFinished(() => plain.close());
  onTestFinished(() => app.close());
  await expect((await app.start(fails, 1, { id: "f" })).result()).rejects.toThrow("card expired");
  await (await app.start(count, 1, { id: "c" })).result();
  const error = { name: "Error", message: "card expired", code: "CARD_EXPIRED" };
  expect((await app.runs.get("f"))?.error).toEqual(error);
  expect((await app.runs.list()).map((run) => run.error)).toEqual([undefined, error]);
  expect(await plain.runs.get("f")).not.toHaveProperty("error");
});

it("app.effects.list is oldest first, and newest first with order: desc, also of one run", async () => {
  const app = await Tape.open({ store: "memory:", runner, log: "silent", leaseTtl: "2s" });
  onTestFinished(() => app.close());
  await (await app.start(count, 3, { id: "a" })).result();
  await (await app.start(count, 2, { id: "b" })).result();
  const list = async (filter: Parameters<typeof app.effects.list>[0]) =>
    (await app.effects.list(filter)).map(({ run, args }) => `${run}${args}`);
  expect(await list({})).toEqual(["a1", "a2", "a3", "b1", "b2"]);
  expect(await list({ order: "desc" })).toEqual(["b2", "b1", "a3", "a2", "a1"]);
  const [latest] = await app.effects.list({ run: "a", order: "desc", limit: 1 });
  expect(latest?.args).toBe(3);
  expect(await list({ run: "a", order: "desc", after: latest!.cursor })).toEqual(["a2", "a1"]);
  await expect(app.effects.list({ order: "newest" as "desc" })).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
});
