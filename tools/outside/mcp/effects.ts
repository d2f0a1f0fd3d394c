// `durable-tape/mcp` with the official clients, and a server in its own process that is killed in mid-call.
import { strict as assert } from "node:assert";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client as Client2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { createRunner, outcome, Tape, workflow } from "durable-tape";
import {
  type ElicitAnswer,
  type ElicitRequest,
  type McpClient,
  type McpTools,
  mcpTools,
  toolInput,
} from "durable-tape/mcp";
import type { Totals } from "../totals.ts";

const server = join(import.meta.dirname, "..", "..", "..", "test", "mcp-tools", "bank-server.ts");
const info = { name: "tape-outside", version: "1.0.0" };
const capabilities = { capabilities: { elicitation: {} } };

type Elicit = (request: ElicitRequest) => Promise<ElicitAnswer>;
type Connect = (folder: string, dies: string, elicit: Elicit) => Promise<McpClient & { close(): Promise<void> }>;

const bank = (folder: string, dies: string) => ({
  ...{ command: process.execPath, args: [server, folder] },
  env: { PATH: process.env.PATH ?? "", BANK_DIES: dies },
});

const generations: Readonly<Record<string, Connect>> = {
  "sdk 1": async (folder, dies, elicit) => {
    const client = new Client1(info, capabilities);
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => (await elicit(params)) as never);
    await client.connect(new Stdio1(bank(folder, dies)) as never);
    return client;
  },
  "client 2": async (folder, dies, elicit) => {
    const client = new Client2(info, capabilities);
    client.setRequestHandler("elicitation/create", async ({ params }) => (await elicit(params)) as never);
    await client.connect(new Stdio2(bank(folder, dies)));
    return client;
  },
};

interface Bank {
  readonly tools: McpTools;
  readonly app: Tape;
  readonly paid: () => number;
  run(body: () => Promise<unknown>): Promise<{ id: string; result: Promise<unknown> }>;
}

async function withBank(connect: Connect, dies: string, work: (bank: Bank) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "tape-outside-bank-"));
  const open: { close(): Promise<void> }[] = [];
  const paid = () => {
    try {
      return readFileSync(join(folder, "ledger"), "utf8")
        .split("\n")
        .filter((line) => line.includes('"pay"')).length;
    } catch {
      return 0;
    }
  };
  const tools: McpTools = mcpTools(
    "bank",
    async () => {
      const client = await connect(folder, dies, (request) => tools.elicit(request));
      open.push(client);
      return client;
    },
    {
      find: { semantics: "read" },
      note: { semantics: "idempotent", retry: { base: "10ms" } },
      pay: {
        businessKey: (args: { invoice: string }) => args.invoice,
        observe: async () => (paid() > 0 ? outcome.confirmed({ text: "found", content: [] }) : outcome.absent()),
        settleDelay: "10ms",
      },
    },
    { elicitation: true },
  );
  let body: () => Promise<unknown> = async () => undefined;
  const does = workflow("does", () => body());
  const runner = createRunner({ workflows: [does], effects: tools.effects });
  const app = await Tape.open({ store: "memory:", runner, log: "silent" });
  try {
    await work({
      ...{ tools, app, paid },
      async run(given) {
        body = given;
        const run = await app.start(does, undefined);
        return { id: run.id, result: run.result() };
      },
    });
  } finally {
    await app.close();
    for (const client of open) await client.close().catch(() => {});
    rmSync(folder, { recursive: true, force: true });
  }
}

const text = async (call: Promise<{ readonly text: string }>): Promise<string> => (await call).text;

const tests: Readonly<Record<string, (connect: Connect) => Promise<void>>> = {
  "calls tools, with a result and with an error": (connect) =>
    withBank(connect, "never", async ({ tools, run }) => {
      assert.equal(await (await run(() => text(tools.call("pay", { invoice: "1" })))).result, "paid 1");
      const refused = await run(() => tools.call("refuse").catch((error: Error) => error.message));
      assert.match(String(await refused.result), /the account is closed/);
      assert.equal((await tools.list()).length, 3);
    }),
  "finds a payment whose server was killed": (connect) =>
    withBank(connect, "after", async ({ tools, run, paid }) => {
      assert.equal(await (await run(() => text(tools.call("pay", { invoice: "2" })))).result, "found");
      assert.equal(paid(), 1);
    }),
  "repeats an idempotent call over a new connection": (connect) =>
    withBank(connect, "before", async ({ tools, run }) => {
      assert.equal(await (await run(() => text(tools.call("note", { invoice: "3" })))).result, "noted");
    }),
  "asks at a gate for what the server elicits": (connect) =>
    withBank(connect, "never", async ({ tools, run, app }) => {
      const { id, result } = await run(() => text(tools.call("book", {})));
      while ((await app.gates.list()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      await app.signal(id, toolInput, { action: "accept", content: { seat: "12A" } });
      assert.equal(await result, "booked 12A");
    }),
};

export async function toolsAsEffects(): Promise<Totals> {
  let [passed, failed] = [0, 0];
  for (const [name, connect] of Object.entries(generations)) {
    for (const [claim, test] of Object.entries(tests)) {
      try {
        await test(connect);
        passed++;
      } catch (error) {
        failed++;
        console.log(` × ${name} ${claim}:`, error);
      }
    }
    console.log(` ${Object.keys(tests).length} tests of durable-tape/mcp with ${name}`);
  }
  return { passed, failed, skipped: 0 };
}
