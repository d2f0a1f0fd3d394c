// The official clients, of both generations and over both transports, against the real program and the real server.
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Totals } from "../totals.ts";

const program = join(import.meta.dirname, "..", "..", "..", "bin", "durable-tape.js");
const info = { name: "tape-outside", version: "1.0.0" };
const who = { by: "ada", reason: "an outside test" };

/** What both generations of clients have in common here. */
interface AnyClient {
  listTools(): Promise<{ tools: { name: string; annotations?: { readOnlyHint?: boolean } | undefined }[] }>;
  callTool(
    call: { name: string; arguments: Record<string, unknown> },
    schema?: undefined,
    options?: object,
  ): Promise<{ [field: string]: unknown }>;
  listResources(): Promise<{ resources: { uri: string }[] }>;
  listResourceTemplates(): Promise<{ resourceTemplates: { uriTemplate: string }[] }>;
  readResource(of: { uri: string }): Promise<{ contents: { text?: unknown }[] }>;
  ping(): Promise<unknown>;
  setLoggingLevel(level: "debug"): Promise<unknown>;
  getServerVersion(): { name: string } | undefined;
  close(): Promise<void>;
}

export interface Places {
  /** A store that a process of its own may open, and a server of another one, with a token of an operator. */
  readonly store: string;
  readonly server: string;
  readonly token: string;
}

type Connect = (places: Places) => Promise<AnyClient>;

const stdio = ({ store }: Places) => ({
  ...{ command: process.execPath, args: [program, "mcp", "--store", store, "--role", "operator"] },
  env: { PATH: process.env.PATH ?? "" },
});
const http = ({ token }: Places) => ({ requestInit: { headers: { authorization: `Bearer ${token}` } } });

async function connected<T>(client: { connect(transport: T): Promise<unknown> }, transport: T): Promise<AnyClient> {
  await client.connect(transport);
  return client as unknown as AnyClient;
}

/** Its options are the second argument; there is no schema. */
async function connected2<T>(client: { connect(transport: T): Promise<unknown> }, transport: T): Promise<AnyClient> {
  const found = await connected(client, transport);
  const callTool = found.callTool.bind(found);
  found.callTool = (call, _schema, options) => callTool(call, options as undefined);
  return found;
}

const clients: Readonly<Record<string, Connect>> = {
  "sdk 1 over stdio": (places) => connected(new Client1(info), new Stdio1(stdio(places)) as never),
  "sdk 1 over http": (places) => connected(new Client1(info), new Http1(new URL(places.server), http(places)) as never),
  "client 2 over stdio": (places) => connected2(new Client2(info), new Stdio2(stdio(places)) as never),
  "client 2 over http": (places) =>
    connected2(new Client2(info), new Http2(new URL(places.server), http(places)) as never),
};

const structure = (result: { [field: string]: unknown }) => result.structuredContent as Record<string, unknown>;

/** One test each. */
const tests: Readonly<Record<string, (client: AnyClient, id: string) => Promise<void>>> = {
  "agrees on the protocol": async (client) => {
    assert.equal(client.getServerVersion()?.name, "durable-tape");
    await client.ping();
    await client.setLoggingLevel("debug");
  },
  "lists the tools of an operator": async (client) => {
    const { tools } = await client.listTools();
    assert.equal(tools.length, 15);
    assert.equal(tools.find(({ name }) => name === "list_runs")?.annotations?.readOnlyHint, true);
  },
  "starts a run once": async (client, id) => {
    const start = { name: "start_run", arguments: { run: id, workflow: "hello", input: { to: "Ada" }, ...who } };
    assert.equal(structure(await client.callTool(start)).started, true);
    assert.equal(structure(await client.callTool(start)).started, false);
  },
  "reads it, as a tool and as a resource": async (client, id) => {
    const { run } = structure(await client.callTool({ name: "get_run", arguments: { run: id } }));
    assert.equal((run as { workflow: string }).workflow, "hello");
    const { resources } = await client.listResources();
    const uri = `tape://runs/${encodeURIComponent(id)}`;
    assert.ok(resources.some((one) => one.uri === uri));
    const { contents } = await client.readResource({ uri });
    assert.match(String(contents[0]?.text), /run\.created/);
    assert.equal((await client.listResourceTemplates()).resourceTemplates[0]?.uriTemplate, "tape://runs/{id}");
  },
  "waits for it, with progress": async (client, id) => {
    const seen: unknown[] = [];
    const wait = { name: "await_run", arguments: { run: id, timeoutMs: 300 } };
    const result = await client.callTool(wait, undefined, { onprogress: (one: unknown) => seen.push(one) });
    assert.equal(structure(result).ended, false); // no worker serves it
    assert.ok(seen.length > 0);
  },
  "gets the error of a tool as its result": async (client) => {
    const result = await client.callTool({ name: "get_run", arguments: { run: "ghost" } });
    assert.equal(result.isError, true);
    assert.equal(structure(result).code, "TAPE_RUN_NOT_FOUND");
    const bad = await client.callTool({ name: "get_run", arguments: { rum: "x" } });
    assert.equal(structure(bad).code, "TAPE_BAD_INPUT");
  },
  "is refused a tool that does not exist": async (client) => {
    await assert.rejects(client.callTool({ name: "drop_tables", arguments: {} }), /no tool drop_tables/);
  },
  "cancels it with a reason": async (client, id) => {
    const result = await client.callTool({ name: "cancel_run", arguments: { run: id, ...who } });
    assert.notEqual(result.isError, true);
    assert.equal(structure(await client.callTool({ name: "await_run", arguments: { run: id } })).status, "CANCELLED");
  },
};

export async function officialClients(places: Places): Promise<Totals> {
  let [passed, failed] = [0, 0];
  for (const [name, connect] of Object.entries(clients)) {
    const id = `run of ${name}`;
    let client: AnyClient | undefined;
    for (const [claim, test] of Object.entries(tests)) {
      try {
        client ??= await connect(places);
        await test(client, id);
        passed++;
      } catch (error) {
        failed++;
        console.log(` × ${name} ${claim}:`, error);
      }
    }
    await client?.close();
    console.log(` ${Object.keys(tests).length} tests with ${name}`);
  }
  return { passed, failed, skipped: 0 };
}
