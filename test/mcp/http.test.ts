import { request as httpRequest } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { createRunner, serve, Tape, workflow } from "../../src/exports/index.ts";
import { openStore } from "../../src/host/open-store.ts";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { latest } from "./stage.ts";

let { promise: released, resolve: release } = Promise.withResolvers<void>();
const slow = workflow("slow", async (tape) => {
  await tape.step("wait", () => released);
  return "done";
});

async function served(credentials: "required" | "none") {
  ({ promise: released, resolve: release } = Promise.withResolvers<void>());
  const store = await openStore("memory:");
  await giveTokens(store, "acme");
  const app = await Tape.open({ store, tenant: "acme", runner: createRunner({ workflows: [slow] }), log: "silent" });
  const serving = await serve({ store, port: 0, credentials, tenant: "acme", log: "silent" });
  onTestFinished(async () => {
    release();
    await serving.stop(1_000);
    await app.close();
    await store.close();
  });
  const post = (body: string, headers: Record<string, string> = {}) =>
    fetch(`${serving.url}/mcp`, {
      ...{ method: "POST", body },
      headers: {
        ...{ "content-type": "application/json", ...latest },
        ...(credentials === "required" && { authorization: `Bearer ${tokenOf("acme", "starter")}` }),
        ...headers,
      },
    });
  return { store, app, serving, post };
}

const message = (method: string, params: object = {}) => JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
const call = (name: string, args: object, more: object = {}) =>
  message("tools/call", { name, arguments: args, ...more });

describe("POST /mcp on a real server", () => {
  it("has no streams of the server and no sessions: 405 for other methods", async () => {
    const { serving, post } = await served("required");
    for (const method of ["GET", "DELETE", "PUT"]) {
      const answer = await fetch(`${serving.url}/mcp`, { method, headers: { accept: "text/event-stream, text/html" } });
      expect([method, answer.status, answer.headers.get("allow")]).toEqual([method, 405, "POST"]);
    }
    const answer = await post(message("initialize", { protocolVersion: "2025-11-25" }));
    expect(answer.headers.get("mcp-session-id")).toBeNull();
    expect(await answer.json()).toMatchObject({ result: { protocolVersion: "2025-11-25" } });
    expect((await post(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }))).status).toBe(202);
  });

  it("refuses pages of other origins, and other names for this machine", async () => {
    const { post, serving } = await served("none");
    expect((await post(message("ping"), { origin: "http://evil.example" })).status).toBe(403);
    expect((await post(message("ping"), { origin: serving.url })).status).toBe(200);
    const rebound = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { "content-type": "application/json", host: "evil.example" };
      httpRequest(`${serving.url}/mcp`, { method: "POST", headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      })
        .on("error", reject)
        .end(message("ping"));
    });
    expect(rebound).toBe(403);
  });

  it("bounds and checks the body before anything reads it", async () => {
    const { post } = await served("required");
    expect((await post("{")).status).toBe(400);
    expect((await post(message("ping"), { "content-type": "text/plain" })).status).toBe(400);
    expect((await post(`${"[".repeat(100)}${"]".repeat(100)}`)).status).toBe(400);
    expect((await post(call("start_run", { input: "x".repeat(17 * 1024 * 1024) }))).status).toBe(413);
    expect((await post(message("ping"))).status).toBe(200);
  });

  it("streams the progress of a wait, and ends it with the run", async () => {
    const { post, app } = await served("required");
    const who = { by: "ada", reason: "a test" };
    await (await post(call("start_run", { run: "s-1", workflow: "slow", ...who }))).json();
    const waiting = { run: "s-1", timeoutMs: 60_000 };
    const answer = await post(call("await_run", waiting, { _meta: { progressToken: "p" } }), {
      accept: "application/json, text/event-stream",
    });
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    while ((await app.store.read.run("acme", "s-1"))?.status !== "RUNNING")
      await new Promise((soon) => setImmediate(soon));
    release();
    const text = await answer.text();
    const events = text.split("\n\n").flatMap((event) => /^data: (.*)$/m.exec(event)?.[1] ?? []);
    const last = JSON.parse(events.at(-1)!) as { id: number; result: { structuredContent: unknown } };
    expect(last).toMatchObject({ id: 1, result: { structuredContent: { run: "s-1", ended: true, outcome: "done" } } });
    expect(events.slice(0, -1).map((event) => JSON.parse(event))).toContainEqual({
      ...{ jsonrpc: "2.0", method: "notifications/progress" },
      params: {
        progressToken: "p",
        progress: expect.any(Number),
        total: 60_000,
        message: expect.stringMatching(/^s-1 is /),
      },
    });
    const plain = await post(call("await_run", waiting), { accept: "application/json" });
    expect(plain.headers.get("content-type")).toBe("application/json");
    expect(await plain.json()).toMatchObject({ result: { structuredContent: { ended: true } } });
  });

  it("ends a wait when its client disconnects, and frees its place", async () => {
    const { post, serving } = await served("required");
    await (await post(call("start_run", { run: "s-2", workflow: "slow", by: "ada", reason: "a test" }))).json();
    const gone = new AbortController();
    const waiting = fetch(`${serving.url}/mcp`, {
      ...{ method: "POST", signal: gone.signal, body: call("await_run", { run: "s-2", timeoutMs: 60_000 }) },
      headers: {
        ...{ "content-type": "application/json", accept: "text/event-stream", ...latest },
        authorization: `Bearer ${tokenOf("acme", "starter")}`,
      },
    });
    await waiting;
    gone.abort();
    // A call in progress would keep the server from draining.
    expect(await serving.stop(5_000)).toBe(true);
  });
});
