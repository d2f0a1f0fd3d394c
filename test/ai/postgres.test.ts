import { describe, expect, inject, it, onTestFinished } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { treasury, versions } from "./treasury.ts";

describe.each(versions)("an agent of AI SDK $sdk on PostgreSQL", (version) => {
  it.each(["generate", "stream"] as const)("%s: answers, pays once and is charged", async (mode) => {
    const url = await freshDatabase(inject("postgres18"));
    onTestFinished(() => dropDatabase(url));
    const { chat, runner, bank, model } = treasury(version, mode); // reserves 4,096 tokens for each answer
    await using app = await Tape.open({ store: url, runner, log: "silent" });
    const run = await app.start(chat, "Pay invoice 2026-117", { budget: { tokens: 100_000 } });
    expect(await run.result()).toContain("Paid 250 for invoice 2026-117.");
    expect([bank.applied("pay").length, model.calls]).toEqual([1, 3]);
    const budgets = await app.store.read.budgets(app.tenant, run.id);
    const tokens = budgets.find(({ unit }) => unit === "tokens")!;
    expect([tokens.reserved, tokens.spent]).toEqual([0, 90_000_000]);
  });
});
