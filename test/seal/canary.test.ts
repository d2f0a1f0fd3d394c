import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { inspect } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import type { TapeEvent } from "../../src/events/event.ts";
import { functionSink } from "../../src/events/sinks/function.ts";
import { serve } from "../../src/host/serve.ts";
import { Tape } from "../../src/host/tape.ts";
import type { PayloadCodec } from "../../src/seal/payload-codec.ts";
import { testCodec } from "./codec.ts";
import { canaries, found, scenario } from "./scenario.ts";

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

/** Runs the scenario on a file, and returns everything that left the process. */
async function leaks(codec: PayloadCodec | undefined) {
  const folder = await mkdtemp(join(tmpdir(), "tape-canary-"));
  folders.push(folder);
  const store = `sqlite:${join(folder, "tape.db")}`;
  const lines: string[] = [];
  const events: TapeEvent[] = [];
  const { runner, play } = scenario(new DatabaseSync(join(folder, "tape.db")));
  const log = (...line: unknown[]) => void lines.push(inspect(line, { depth: 9 }));
  const app = await Tape.open({ store, runner, log, ...(codec && { codec }) });
  const sink = functionSink((batch) => void events.push(...batch));
  app.fanouts.start({ name: "all", sink, payload: "values", filter: { kinds: ["all"] }, from: "start" });
  const kept = await play(app);
  await expect.poll(() => events.some(({ data }) => JSON.stringify(data).includes("run.ended"))).toBe(true);
  const files = () => readdirSync(folder).map((name) => readFileSync(join(folder, name), "latin1"));
  const open = files().join(); // with the write-ahead log
  await using server = await serve({ store, port: 0, log });
  const answers = await answersOf(server.url);
  await app.close();
  return { files: open + files().join(), lines: lines.join("\n"), events: JSON.stringify(events), answers, kept };
}

/** What callers of the server get: lists, journals, conversations, streams, the feed, tools of MCP and the page. */
async function answersOf(url: string): Promise<string> {
  const get = async (path: string): Promise<string> => (await fetch(url + path)).text();
  const call = async (name: string, args: object): Promise<string> => {
    const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    return (await fetch(`${url}/mcp`, { method: "POST", headers, body: JSON.stringify(body) })).text();
  };
  const runs = JSON.parse(await get("/v1/runs")) as { runs: { id: string; status: string }[] };
  const of = runs.runs.flatMap(({ id, status }) => {
    const run = `/v1/runs/${encodeURIComponent(id)}`;
    const parts = ["journal", "journal?inbox=true", "effects", "gates", "published", "conversation"];
    if (status === "COMPLETED") parts.push("streams/tokens"); // a run that waits may write more
    return [run, ...parts.map((part) => `${run}/${part}`)];
  });
  const tools = runs.runs.flatMap(({ id }) => [call("get_run", { run: id }), call("conversation", { run: id })]);
  const lists = ["/v1/runs", "/v1/effects", "/v1/gates", "/v1/values", "/v1/schedules", "/v1/feed", "/v1/audit", "/"];
  const texts = await Promise.all([...[...lists, ...of].map(get), ...tools, call("list_gates", {})]);
  return texts.join("\n");
}

describe("with a codec", () => {
  it("no payload is in the files, the log, the feed, the sinks or the server's answers", async () => {
    const { files, lines, events, answers, kept } = await leaks(testCodec());
    expect({ files: found(files), lines: found(lines), events: found(events), answers: found(answers) }).toEqual({
      files: [],
      lines: [],
      events: [],
      answers: [],
    });
    expect(answers).toContain('"sealed"');
    expect(answers).toContain('"result":{"content"'); // the tools answered
    expect(events).toContain('"sealed"');
    expect(lines).toContain("run.failed");
    expect(kept).toMatchObject({ results: "read" });
  });

  it("the same run without a codec leaves every payload in the files", async () => {
    const { files, answers } = await leaks(undefined);
    expect(found(files)).toEqual([...canaries]);
    expect(found(answers).length).toBeGreaterThan(canaries.length / 2);
  });
});
