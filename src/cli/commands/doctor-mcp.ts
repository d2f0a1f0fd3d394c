import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { systemClock } from "../../base/clock.ts";
import { latestVersion } from "../../mcp/versions.ts";
import { TapeError } from "../../model/errors.ts";
import { version } from "../version.ts";
import type { Finding } from "./finding.ts";

/** A server that is started by npx is installed first. */
const patienceMs = 60_000;
/** A server without end would list without end. */
const maxPages = 20;
const maxNameChars = 200;

type Request = (method: string, params: object) => Promise<unknown>;

interface ListedTool {
  readonly name?: unknown;
  readonly annotations?: { readonly readOnlyHint?: unknown; readonly idempotentHint?: unknown };
}

/** What the tools of an MCP server suggest for the policies of `mcpTools`. Nothing is called. */
export async function mcpFindings(target: string): Promise<Finding[]> {
  const tools = /^https?:/i.test(target) ? await overHttp(target) : await overStdio(target);
  const summary: Finding = { check: "mcp", state: "ok", message: `${target} has ${tools.length} tools` };
  return [summary, ...tools.map(suggestion)];
}

function suggestion({ name, annotations = {} }: ListedTool): Finding {
  const tool = String(name).slice(0, maxNameChars);
  const check = "mcp";
  if (annotations.readOnlyHint === true) {
    const next = "The server says so about itself. If you know it to be true, give the tool this policy.";
    return { check, state: "ok", message: `${tool}: { semantics: "read" }`, next };
  }
  if (annotations.idempotentHint === true) {
    const next = "The server says so about itself. If you know that a repeated call has no further effect, use it.";
    return { check, state: "ok", message: `${tool}: { semantics: "idempotent" }`, next };
  }
  const next = "Give it a businessKey and observe, or compensate. Without a policy an operator decides after a crash.";
  return {
    check,
    state: "warn",
    message: `${tool}: may change something, and nothing says whether it may be repeated`,
    next,
  };
}

async function listed(request: Request, notify: (method: string) => Promise<void>): Promise<ListedTool[]> {
  const clientInfo = { name: "durable-tape", version };
  await request("initialize", { protocolVersion: latestVersion, capabilities: {}, clientInfo });
  await notify("notifications/initialized");
  const tools: ListedTool[] = [];
  let cursor: unknown;
  for (let pages = 0; pages < maxPages; pages++) {
    const page = (await request("tools/list", cursor === undefined ? {} : { cursor })) as {
      readonly tools?: readonly ListedTool[];
      readonly nextCursor?: unknown;
    };
    tools.push(...(page.tools ?? []));
    cursor = page.nextCursor;
    if (cursor === undefined) break;
  }
  return tools;
}

interface Answer {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message?: unknown };
}

function resultOf({ result, error }: Answer): unknown {
  if (error === undefined) return result;
  throw unreachable(`it answered: ${String(error.message).slice(0, 500)}`);
}

/** Starts the command without a shell, and ends it. */
async function overStdio(command: string): Promise<ListedTool[]> {
  const [file = "", ...args] = command.trim().split(/\s+/);
  const child = spawn(file, args, { stdio: ["pipe", "pipe", "ignore"] });
  const waiting = new Map<unknown, (answer: Answer) => void>();
  const { promise: over, reject } = Promise.withResolvers<never>();
  over.catch(() => {}); // awaited only while a request waits
  child.on("error", (error) => reject(unreachable(error.message)));
  child.on("exit", (code) => reject(unreachable(`${file} exited with ${code}`)));
  child.stdin.on("error", () => {}); // its exit is reported
  const cancel = systemClock.after(patienceMs, () => reject(unreachable("it did not answer in a minute")));
  createInterface({ input: child.stdout }).on("line", (line) => {
    try {
      const answer = JSON.parse(line) as Answer;
      waiting.get(answer.id)?.(answer);
    } catch {
      reject(unreachable("it wrote a line that is no message"));
    }
  });
  const write = (message: object): void =>
    void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  let ids = 0;
  const request: Request = async (method, params) => {
    const id = ++ids;
    const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve));
    write({ id, method, params });
    return resultOf(await Promise.race([answered, over]));
  };
  try {
    return await listed(request, async (method) => write({ method }));
  } finally {
    cancel();
    child.kill();
  }
}

async function overHttp(url: string): Promise<ListedTool[]> {
  const controller = new AbortController();
  const cancel = systemClock.after(patienceMs, () => controller.abort());
  let session: Record<string, string> = {};
  let ids = 0;
  const post = async (message: object): Promise<Response> => {
    const headers = {
      ...{ "content-type": "application/json", accept: "application/json, text/event-stream" },
      ...{ "mcp-protocol-version": latestVersion, ...session },
    };
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    const response = await fetch(url, { method: "POST", body, headers, redirect: "error", signal: controller.signal });
    const id = response.headers.get("mcp-session-id");
    if (id !== null) session = { "mcp-session-id": id };
    if (!response.ok) throw unreachable(`${url} answered ${response.status}`);
    return response;
  };
  const request: Request = async (method, params) => {
    const response = await post({ id: ++ids, method, params });
    const text = await response.text();
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const documents = isStream ? [...text.matchAll(/^data: ?(.+)$/gm)].map(([, json]) => json!) : [text];
    const answer = documents.map((json) => JSON.parse(json) as Answer).find(({ id }) => id === ids);
    return resultOf(answer ?? { error: { message: "nothing" } });
  };
  try {
    return await listed(request, async (method) => void (await post({ method })));
  } catch (error) {
    throw error instanceof TapeError ? error : unreachable(error instanceof Error ? error.message : String(error));
  } finally {
    cancel();
  }
}

const unreachable = (why: string): TapeError => new TapeError("TAPE_BAD_INPUT", `--mcp: no server there: ${why}`);
