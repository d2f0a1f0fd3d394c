import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createRunner, outcome, Tape, workflow } from "../../src/exports/index.ts";
import {
  type McpPolicies,
  type McpTools,
  type McpToolsOptions,
  mcpTools,
  toolApproval,
  toolInput,
} from "../../src/exports/mcp.ts";
import { BankClient } from "./bank-client.ts";

interface World {
  readonly bank: McpTools;
  readonly app: Tape;
  /** How often a client was connected. */
  readonly connects: () => number;
  readonly ledger: () => { what: string; args: { invoice?: string }; _meta: Record<string, string> }[];
  run<T>(body: () => Promise<T>): Promise<{ id: string; result: Promise<T> }>;
}

/** A bank in its own process, and a program whose one workflow does what a test says. */
async function world(policies: McpPolicies, dies = "never", options: McpToolsOptions = {}): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), "tape-bank-"));
  const clients: BankClient[] = [];
  const bank: McpTools = mcpTools(
    "bank",
    () => {
      const client = new BankClient(folder, dies, (request) => bank.elicit(request));
      clients.push(client);
      return client;
    },
    policies,
    options,
  );
  let body: () => Promise<unknown> = async () => undefined;
  const does = workflow("does", () => body());
  const runner = createRunner({ workflows: [does], effects: bank.effects });
  const app = await Tape.open({
    store: "memory:",
    runner,
    log: "silent",
    leaseTtl: "1s", // the start window of an attempt: only after it can an effect be proven absent
  });
  onTestFinished(async () => {
    await app.close();
    for (const { child } of clients) child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  });
  return {
    ...{ bank, app },
    connects: () => clients.length,
    ledger() {
      const file = join(folder, "ledger");
      if (!existsSync(file)) return [];
      return readFileSync(file, "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    },
    async run(given) {
      body = given;
      const run = await app.start(does, undefined);
      return { id: run.id, result: run.result() as Promise<never> };
    },
  };
}

const soon = () => new Promise((resolve) => setImmediate(resolve));

/** Asks the bank, by another tool of the same server. */
const payment = (bank: () => McpTools, find: (invoice: string) => Promise<number>): McpPolicies => ({
  find: { semantics: "read" },
  pay: {
    businessKey: (args: { invoice: string }) => args.invoice,
    observe: async (args: { invoice: string }) =>
      (await find(args.invoice)) > 0
        ? outcome.confirmed({ text: `found by ${bank().effects.length}` })
        : outcome.absent(),
    ...{ settleDelay: "10ms", timeout: "3s", retry: { base: "10ms" } },
  },
});

describe("mcpTools", () => {
  it("calls tools as effects, with the effect's key and token in _meta", async () => {
    const { bank, app, run, ledger } = await world({ find: { semantics: "read" }, note: { semantics: "idempotent" } });
    expect(bank.effects.map(({ definition }) => [definition.name, definition.semantics])).toEqual([
      ["bank.read", "read"],
      ["bank.idempotent", "idempotent"],
      ["bank.act", "non_idempotent"],
    ]);
    const { id, result } = await run(async () => [
      await bank.call("note", { invoice: "7" }),
      await bank.call("pay", { invoice: "7" }),
      (await bank.call("find", { invoice: "7" })).structured,
    ]);
    expect(await result).toEqual([
      { text: "noted", content: [{ type: "text", text: "noted" }] },
      { text: "paid 7", content: expect.any(Array), structured: { receipt: "r-7" } },
      { paid: 1 },
    ]);
    const effects = await app.store.read.effects("default", { run: id });
    expect(effects.map(({ name, status }) => `${name} ${status}`)).toEqual([
      ...["bank.idempotent CONFIRMED", "bank.act CONFIRMED", "bank.read CONFIRMED"],
    ]);
    const [noted, paid] = ledger();
    expect(noted?._meta).toEqual({ "tape/key": effects[0]?.key, "tape/token": "1", "tape/call": `${id} note 1` });
    expect(paid?._meta["tape/key"]).toBe(effects[1]?.key);
    expect(await bank.list()).toHaveLength(3);
  });

  it("takes isError and a rejected request as proof that nothing happened", async () => {
    const { bank, app, run, connects } = await world({});
    const { id, result } = await run(async () => {
      const failed = await bank.call("refuse").catch((error) => error);
      const unknown = await bank.attempt("nope", {}, "call-9");
      return [failed.name, failed.status, failed.message, unknown.ok, "words" in unknown && unknown.words];
    });
    expect(await result).toEqual([
      ...["McpCallFailed", "failed", expect.stringContaining("the account is closed")],
      ...[false, expect.stringContaining("no tool nope")],
    ]);
    const effects = await app.store.read.effects("default", { run: id });
    expect(effects.map(({ status }) => status)).toEqual(["FAILED", "FAILED"]);
    expect(connects()).toBe(1);
  });

  it.each([
    ["after it paid: found, and not paid again", "after"],
    ["before it paid: proven absent, and paid once", "before"],
  ])("survives a server that is killed %s", async (_claim, dies) => {
    let asking: McpTools | undefined;
    const observer: { find?: (invoice: string) => Promise<number> } = {};
    const made = await world(
      payment(
        () => asking!,
        (invoice) => observer.find!(invoice),
      ),
      dies,
    );
    asking = made.bank;
    const { app, run, ledger, connects } = made;
    observer.find = async (invoice) =>
      ledger().filter(({ what, args }) => what === "pay" && args.invoice === invoice).length;
    const { id, result } = await run(() => made.bank.call("pay", { invoice: "9" }));
    expect((await result).text).toMatch(dies === "after" ? /^found by 4$/ : /^paid 9$/);
    expect(ledger().map(({ what }) => what)).toEqual(["pay"]);
    const kinds = (await app.store.read.journal("default", { run: id })).map(({ kind, data }) =>
      kind === "effect.settled" ? `settled ${(data as { to: string }).to}` : kind,
    );
    expect(kinds).toContain("settled UNKNOWN"); // it was in doubt, and not guessed
    expect(connects()).toBe(dies === "after" ? 1 : 2);
  });

  it("sends an idempotent tool again over a new connection", async () => {
    const { bank, run, ledger, connects } = await world(
      { note: { semantics: "idempotent", retry: { base: "1ms" } } },
      "after",
    );
    const { result } = await run(() => bank.call("note", { invoice: "1" }));
    expect((await result).text).toBe("noted");
    expect(connects()).toBe(2);
    expect(new Set(ledger().map(({ _meta }) => _meta["tape/key"])).size).toBe(1);
  });

  it("waits for an operator if a tool without a policy may have run", async () => {
    const { bank, app, run, ledger } = await world({}, "after");
    const { id, result } = await run(() => bank.call("pay", { invoice: "3" }));
    const inDoubt = async () =>
      (await app.store.read.effects("default", { run: id })).find(({ status }) =>
        ["UNKNOWN", "STUCK"].includes(status),
      );
    while ((await inDoubt()) === undefined) await soon();
    await app.resolve({
      ...{ run: id, pos: (await inDoubt())!.pos, by: "ada", reason: "the ledger has it" },
      resolution: { as: "confirmed", value: { text: "seen", content: [] } },
    });
    expect((await result).text).toBe("seen");
    expect(ledger()).toHaveLength(1);
  });

  it("opens a gate for exactly this call before the tool runs", async () => {
    const { bank, app, run, ledger } = await world({
      pay: { approve: (args: { amount: number }) => args.amount > 100 },
    });
    const { id, result } = await run(async () => {
      const small = await bank.call("pay", { invoice: "a", amount: 1 });
      const large = await bank.attempt("pay", { invoice: "b", amount: 101 }, "c-1");
      const again = await bank.call("pay", { invoice: "b", amount: 101 });
      return [small.text, large.ok, again.text];
    });
    for (const approved of [false, true]) {
      while ((await app.gates.list()).length < 1) await soon();
      const [open] = await app.gates.list();
      expect(open).toMatchObject({ name: toolApproval.name, payload: { tool: "bank.act", input: { tool: "pay" } } });
      await app.signal(id, toolApproval, { approved }, { binds: open!.binds!, mustMatch: true });
      while ((await app.gates.list()).some(({ binds }) => binds === open!.binds)) await soon();
    }
    expect(await result).toEqual(["paid a", false, "paid b"]);
    expect(ledger().map(({ args }) => args.invoice)).toEqual(["a", "b"]);
  });

  it("asks at a gate for what the server elicits, and calls again with the answer", async () => {
    const { bank, app, run, ledger } = await world(
      {
        book: {
          businessKey: ({ trip }: { trip: string }) => trip,
          observe: () => outcome.absent(),
          settleDelay: "10ms",
        },
      },
      "never",
      { elicitation: true },
    );
    const { id, result } = await run(() => bank.call("book", { trip: "a" }));
    while ((await app.gates.list()).length < 1) await soon();
    expect((await app.gates.list())[0]).toMatchObject({
      ...{
        name: "tool input",
        payload: { tool: "bank book", message: "which seat?", requestedSchema: { required: ["seat"] } },
      },
    });
    expect(ledger()).toEqual([]);
    await app.signal(id, toolInput, { action: "accept", content: { seat: "12A" } });
    expect((await result).text).toBe("booked 12A");
    expect(ledger().map(({ what, _meta }) => [what, _meta["tape/call"]])).toEqual([["book 12A", `${id} book 1`]]);
    const refused = await run(() => bank.call("book", { trip: "b" }).catch((error) => error.message));
    while ((await app.gates.list()).length < 1) await soon();
    await app.signal(refused.id, toolInput, { action: "decline" });
    expect(await refused.result).toContain("no seat was chosen");
  });

  it("refuses what cannot be meant", async () => {
    const { bank, run } = await world({ find: { semantics: "read" } }, "never", { strict: true });
    const { result } = await run(() => bank.call("pay", { invoice: "1" }).catch((error) => error.code));
    expect(await result).toBe("TAPE_UNSAFE_EFFECT");
    const client = { callTool: async () => ({}) };
    expect(() => mcpTools("", client)).toThrow(/TAPE_BAD_INPUT/);
    expect(() => mcpTools("b", client, {}, { strikt: true } as never)).toThrow(/strict/);
    expect(() => mcpTools("b", client, { x: { local: true } as never })).toThrow(/cannot be local/);
    expect(() => mcpTools("b", client, { x: { semantic: "read" } as never })).toThrow(/semantics/);
  });
});
