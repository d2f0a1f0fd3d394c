import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { ErasedPayload } from "../../src/base/codec.ts";
import { conversationOf } from "../../src/host/conversation.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { program, temporaryFolder } from "../cli/stage.ts";

const canary = "ada@example.org";
const leaf = workflow("leaf", async (tape, input: string) => tape.step("s", () => input));
const welcome = workflow("welcome", async (tape, input: { mail: string }) => {
  tape.label({ customer: input.mail });
  tape.publish("mail", input.mail);
  return tape.decide("judge", () => input.mail);
});
const family = workflow("family", async (tape, input: string) => tape.call(leaf, input));
const fails = workflow("fails", async (_tape, input: string) => {
  throw new Error(`no mail for ${input}`);
});
const runner = createRunner({ workflows: [leaf, welcome, family, fails] });
const why = { reason: "a request of the customer" };

describe("erasing a run", () => {
  it("takes its payloads from every view, and refuses what would need them", async () => {
    await using app = await Tape.open({ store: "memory:", runner, log: "silent" });
    await app.call(welcome, { mail: canary }, { id: "w", labels: { plan: canary } });
    const run = await app.run("w");
    expect(await run.result()).toBe(canary);
    expect(await app.erase("w", why)).toMatchObject({ runs: 1 });
    const view = await app.runs.get("w");
    expect(view).toMatchObject({
      status: "COMPLETED",
      erased: true,
      labels: { plan: "[erased]", customer: "[erased]" },
    });
    await expect((await app.run("w")).result()).rejects.toMatchObject({ code: "TAPE_ERASED" });
    await expect(app.fork("w", { ...why, by: "ann", at: 0 })).rejects.toMatchObject({ code: "TAPE_ERASED" });
    await expect(app.forkPlan("w")).rejects.toMatchObject({ code: "TAPE_ERASED" });
    await expect((await app.run("w")).published("mail" as never)).rejects.toMatchObject({ code: "TAPE_ERASED" });
    expect(JSON.stringify(await conversationOf(app, "w", { content: true } as never))).not.toContain(canary);
    const records = await Array.fromAsync(app.journal("w"));
    expect(records[0]?.data).toMatchObject({ input: expect.any(ErasedPayload) });
    expect(await app.erase("w", why)).toMatchObject({ already: true, records: 0 });
  });

  it("names the run that has a copy, takes trees as a whole, and a failure loses its message", async () => {
    await using app = await Tape.open({ store: "memory:", runner, log: "silent" });
    await app.call(family, canary, { id: "f" });
    await expect(app.erase("f", why)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT", details: { field: "tree" } });
    expect(await app.erase("f", { ...why, tree: true })).toMatchObject({ runs: 2 });
    const runs = await app.runs.list();
    expect(JSON.stringify(runs, (_key, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
      canary,
    );
    await app.call(fails, canary, { id: "x" }).catch(() => {});
    expect((await app.runs.get("x"))?.error?.message).toContain(canary);
    await app.erase("x", why);
    const failed = await app.runs.get("x");
    expect([failed?.status, failed?.error, failed?.erased]).toEqual(["FAILED", undefined, true]);
    await app.call(leaf, canary, { id: "l" });
    await app.fork("l", { ...why, by: "ann", at: 0, id: "fork" });
    await (await app.run("fork")).result();
    expect(await app.erase("fork", why)).toMatchObject({ copies: ["l"] });
    await expect(app.erase("none", why)).rejects.toMatchObject({ code: "TAPE_RUN_NOT_FOUND" });
    await expect(app.erase("l", { ...why, all: true } as never)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
  });

  it("the command erases a run in the store, and one in the archive", async () => {
    const folder = await temporaryFolder();
    const file = join(folder, "tape.db");
    const open = (more: object = {}): Promise<Tape> =>
      Tape.open({ store: `sqlite:${file}`, runner, log: "silent", ...more });
    const first = await open();
    for (const id of ["kept", "gone", "other"]) await first.call(leaf, `${id} ${canary}`, { id });
    await first.call(family, `tree ${canary}`, { id: "tree" });
    await first.close();
    const settings = join(folder, "tape.yaml");
    await writeFile(
      settings,
      `tape:\n  store: { url: "sqlite:./tape.db" }\n  retention: { archive: "file:./archive" }\n`,
    );
    const tape = (...args: string[]) => program(...args, "--config", settings);
    expect((await tape("erase", "kept")).code).not.toBe(0);
    const erased = await tape("erase", "kept", "--reason", "asked");
    expect(erased.stdout).toMatch(/kept: erased \d+ records of 1 run[\s\S]*not erased: the audit log, backups/);
    expect((await tape("inspect", "kept")).stdout).toMatch(/its payloads were erased[\s\S]*step\.done[^\n]*\[erased\]/);
    expect((await tape("audit")).stdout).toMatch(/run\.erase .*asked/);
    const db = new DatabaseSync(file);
    db.exec("update runs set ended_at = ended_at - 60000; delete from retention");
    db.close();
    const app = await open({
      retention: { archive: `file:${join(folder, "archive")}`, default: "1s", interval: "20ms" },
    });
    try {
      await expect.poll(async () => (await app.store.read.archived("default")).length, { timeout: 20_000 }).toBe(5);
      const error = await app.erase("gone", why).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "TAPE_RUN_GONE", details: { archive: expect.stringContaining("default/") } });
    } finally {
      await app.close();
    }
    const [{ archive: name } = { archive: "" }] = JSON.parse((await tape("archived", "--output", "json")).stdout) as {
      archive: string;
    }[];
    const text = async () => gunzipSync(await readFile(join(folder, "archive", name))).toString();
    expect(await text()).not.toContain(`kept ${canary}`);
    expect(await text()).toContain(`gone ${canary}`);
    const before = (await text()).split("\n");
    expect((await tape("erase", "gone", "--archive", "--reason", "asked")).stdout).toContain("gone: erased 1 run in");
    expect((await tape("erase", "tree", "--archive", "--reason", "asked")).stdout).toContain("tree: erased 2 runs in");
    const after = (await text()).split("\n");
    expect(after.join("\n")).not.toMatch(/(gone|tree) ada/);
    const others = (lines: string[]) => lines.filter((line) => line.includes('"run":"other"'));
    expect(others(after)).toEqual(others(before));
    expect(others(after).length).toBeGreaterThan(3);
    expect((await tape("inspect", "gone", "--archive")).stdout).toMatch(/gone {2}COMPLETED[\s\S]*\[erased\]/);
    expect((await tape("audit")).stdout).toMatch(/archive\.erase .*asked/);
  });
});
