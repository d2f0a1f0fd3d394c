import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { serve } from "../../src/exports/index.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { program as audit } from "../cli/stage.ts";
import { giveTokens, makeScene, type Scene, tokenOf } from "../server/scene.ts";
import { who } from "./stage.ts";

const program = resolve(import.meta.dirname, "../../bin/durable-tape.js");

interface Message {
  readonly id?: number | null;
  readonly method?: string;
  readonly result?: { readonly [field: string]: unknown };
  readonly error?: { readonly code: number };
}

/** A client in this process, and `durable-tape mcp` in another. */
class Client {
  readonly child: ChildProcess;
  readonly messages: Message[] = [];
  stderr = "";
  #arrived = () => {};
  #rest = "";

  constructor(args: readonly string[], env: Record<string, string> = {}) {
    this.child = spawn(process.execPath, [program, "mcp", ...args], {
      ...{ stdio: "pipe", env: { PATH: process.env.PATH ?? "", ...env } },
    });
    onTestFinished(() => void this.child.kill("SIGKILL"));
    this.child.stderr!.on("data", (bytes) => {
      this.stderr += String(bytes);
    });
    this.child.on("exit", () => this.#arrived());
    this.child.stdout!.on("data", (bytes) => {
      const lines = (this.#rest + String(bytes)).split("\n");
      this.#rest = lines.pop()!;
      this.messages.push(...lines.map((line) => JSON.parse(line) as Message)); // nothing but messages may come
      this.#arrived();
    });
  }

  write(line: string | object): void {
    this.child.stdin!.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`);
  }

  async next(is: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const found = this.messages.find(is);
      if (found !== undefined) return found;
      if (this.child.exitCode !== null) throw new Error(`it exited with ${this.child.exitCode}: ${this.stderr}`);
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
    }
  }

  async request(id: number, method: string, params: object = {}): Promise<Message> {
    this.write({ jsonrpc: "2.0", id, method, params });
    return this.next((message) => message.id === id);
  }

  async call(id: number, name: string, args: object) {
    const { result } = await this.request(id, "tools/call", { name, arguments: args });
    return { json: result?.structuredContent as Record<string, unknown>, isError: result?.isError === true };
  }

  async initialize(protocolVersion = "2025-11-25"): Promise<void> {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } };
    expect((await this.request(0, "initialize", params)).result).toMatchObject({ protocolVersion });
    this.write({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  /** Closes its end, and returns the exit code. */
  async end(): Promise<number | null> {
    this.child.stdin!.end();
    if (this.child.exitCode === null) await once(this.child, "exit");
    return this.child.exitCode;
  }
}

async function storeFile(): Promise<{ readonly url: string; readonly store: Store; readonly scene: Scene }> {
  const folder = await mkdtemp(join(tmpdir(), "tape-mcp-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const store = await openStore(url);
  onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { url, store, scene: await makeScene(store, "default") };
}

describe("durable-tape mcp", () => {
  it("serves a store to one client, as a reader unless more is asked for", async () => {
    const { url, scene } = await storeFile();
    const client = new Client(["--store", url]);
    expect((await client.request(9, "tools/list")).error?.code).toBe(-32_600); // before initialize
    await client.initialize();
    const { tools } = (await client.request(1, "tools/list")).result as { tools: { name: string }[] };
    expect(tools.map(({ name }) => name)).not.toContain("start_run");
    expect((await client.call(2, "get_run", { run: scene.idle })).json).toMatchObject({ run: { id: scene.idle } });
    expect((await client.request(3, "tools/call", { name: "redrive", arguments: {} })).error?.code).toBe(-32_602);
    expect(await client.end()).toBe(0);
    expect(client.stderr).toBe("");
  });

  it("lets no session of a store approve a run that another one started", async () => {
    const { url, store } = await storeFile();
    const [one, two] = [
      new Client(["--store", url, "--role", "operator"]),
      new Client(["--store", url, "--role", "operator"]),
    ];
    await Promise.all([one.initialize(), two.initialize("2025-06-18")]);
    expect((await one.call(1, "start_run", { run: "own", workflow: "w", ...who })).json).toMatchObject({
      started: true,
    });
    const claimant = { owner: "w", label: "w", reactor: "recovery", ttlMs: 60_000 };
    const held = await store.claim.acquire("default", { target: { run: "own" }, claimant, nonce: 7n, expect: "free" });
    if (!held.ok) throw new Error("not acquired");
    const opened = { kind: "gate.opened", data: { pos: 0, name: "boss", binds: "call" } } as const;
    await store.fenced.append(held.term.fence, { after: held.term.head, records: [opened] });
    const answer = { run: "own", gate: "boss", binds: "call", value: 1, ...who };
    for (const client of [one, two]) {
      expect(await client.call(2, "answer_gate", answer)).toMatchObject({
        isError: true,
        json: { code: "TAPE_SELF_APPROVAL" },
      });
    }
    expect((await store.read.audit("default"))[0]).toMatchObject({
      ...{ action: "run.start", by: "mcp for ada", via: { channel: "mcp", role: "operator" } },
    });
    await Promise.all([one.end(), two.end()]);
    const printed = (await audit("audit", "--store", url)).stdout;
    expect(printed).toMatch(/mcp for ada via mcp +mcp:stdio +run\.start/);
  });

  it("survives bad lines, answers what it can, and cancels a wait", async () => {
    const { url, scene } = await storeFile();
    const client = new Client(["--store", url, "--role", "starter"]);
    await client.initialize("2025-03-26");
    client.write("");
    for (const line of ["nope", "{", "[]", "null", "7", '"x"', "{}", '{"jsonrpc":"2.0"}']) client.write(line);
    client.write([
      { jsonrpc: "2.0", id: 21, method: "ping" },
      { jsonrpc: "2.0", id: 22, method: "nope" },
    ]);
    const batch = (await client.next((message) => Array.isArray(message))) as unknown as Message[];
    expect(batch.map(({ id }) => id)).toEqual([21, 22]);
    client.write(`"${"x".repeat(17 * 1024 * 1024)}"`); // longer than any line may be
    expect((await client.request(30, "ping")).result).toEqual({});
    expect(client.messages.filter(({ id }) => id === null).map(({ error }) => error?.code)).toEqual([
      ...[-32_700, -32_700, -32_600, -32_600, -32_600, -32_600, -32_600, -32_600, -32_700],
    ]);
    const params = { name: "await_run", arguments: { run: scene.run, timeoutMs: 60_000 }, _meta: { progressToken: 5 } };
    for (let id = 100; id < 164; id++) client.write({ jsonrpc: "2.0", id, method: "tools/call", params });
    await client.next(({ method }) => method === "notifications/progress");
    expect((await client.request(200, "ping")).error?.code).toBe(-32_600); // 64 at once are enough
    for (let id = 100; id < 164; id++) {
      client.write({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } });
    }
    let tries = 300;
    while ((await client.request(tries, "ping")).error !== undefined) tries++;
    expect(await client.end()).toBe(0);
    expect(client.messages.some(({ id }) => id === 100 || id === 163)).toBe(false);
  });

  it("serves a server with its token, whose role and tenant decide", async () => {
    const store = await openStore("memory:");
    const scene = await makeScene(store, "acme");
    await giveTokens(store, "globex");
    const serving = await serve({ store, port: 0, credentials: "required", log: "silent" });
    onTestFinished(async () => {
      await serving.stop(1_000);
      await store.close();
    });
    const acme = new Client(["--server", serving.url], { TAPE_TOKEN: tokenOf("acme", "operator") });
    const globex = new Client(["--server", serving.url, "--token", tokenOf("globex", "operator")]);
    await Promise.all([acme.initialize(), globex.initialize()]);
    expect((await acme.call(1, "redrive", { run: scene.stuck, ...who })).isError).toBe(false);
    expect((await globex.call(1, "redrive", { run: scene.stuck, ...who })).json).toMatchObject({
      code: "TAPE_RUN_NOT_FOUND",
    });
    expect((await store.read.audit("acme"))[0]).toMatchObject({
      ...{ action: "redrive", by: "operator of acme for ada", via: { token: "acme-operator", channel: "mcp" } },
    });
    await Promise.all([acme.end(), globex.end()]);
    const wrong = new Client(["--server", serving.url, "--token", `acme-operator.${"y".repeat(43)}`]);
    await once(wrong.child, "exit");
    expect([wrong.child.exitCode, wrong.stderr]).toEqual([1, expect.stringContaining("TAPE_UNAUTHENTICATED")]);
  });
});
