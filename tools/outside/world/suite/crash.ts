import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { hydrateWorkflowReturnValue } from "@workflow/core/serialization";
import { expect, onTestFinished, vi } from "vitest";
import { type Cases, newTenant, open, type Place } from "./places.ts";

const wait = { timeout: 50_000, interval: 50 };
const children = join(import.meta.dirname, "child.ts");
const frameworkServer = fileURLToPath(import.meta.resolve("@workflow/world-testing/dist/src/server.mjs"));

/** A process on the store, until it is killed or the test ends. */
function start(place: Place, tenant: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const child = spawn(process.execPath, args, {
    env: {
      ...process.env,
      ...{ WORKFLOW_TAPE_STORE: place.url(), WORKFLOW_TAPE_TENANT: tenant, WORKFLOW_TAPE_LEASE_TTL: "3s" },
      ...env,
    },
    stdio: ["ignore", "pipe", "inherit", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

async function killed(child: ChildProcess): Promise<void> {
  const ended = once(child, "close");
  child.kill("SIGKILL");
  await ended;
}

/** The first line that a process prints. */
async function firstLine(child: ChildProcess): Promise<string> {
  const [line] = (await once(createInterface({ input: child.stdout! }), "line")) as [string];
  return line;
}

/** A file in which handlers write down what they received: process, message, attempt. */
function ledger(): { readonly file: string; lines(): string[][] } {
  const folder = mkdtempSync(join(tmpdir(), "tape-ledger-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "ledger");
  const lines = (): string[][] =>
    existsSync(file)
      ? readFileSync(file, "utf8")
          .trim()
          .split("\n")
          .map((line) => line.split(" "))
      : [];
  return { file, lines };
}

/** Processes that die. */
export function crash({ it, place }: Cases): void {
  it("between queue and handler loses no message", async () => {
    const { file, lines } = ledger();
    const tenant = newTenant();
    const sender = start(place, tenant, [children, "send"]);
    const messageId = await firstLine(sender);
    await killed(sender);
    expect(lines()).toEqual([]);
    const receiver = start(place, tenant, [children, "receive", file]);
    await vi.waitFor(() => expect(lines()).toEqual([[String(receiver.pid), messageId, "1"]]), wait);
  });

  it("between a failed connection and the handler loses no message", async () => {
    const { file, lines } = ledger();
    const tenant = newTenant();
    // It delivers to a port at which no server listens.
    const sender = start(place, tenant, [children, "send", "started"], {
      WORKFLOW_TAPE_BASE_URL: "http://127.0.0.1:9",
    });
    const messageId = await firstLine(sender);
    await killed(sender);
    const receiver = start(place, tenant, [children, "receive", file]);
    await vi.waitFor(() => expect(lines()).toEqual([[String(receiver.pid), messageId, "1"]]), wait);
  });

  it("in the middle of a delivery has the message delivered again", async () => {
    const { file, lines } = ledger();
    const tenant = newTenant();
    const first = start(place, tenant, [children, "receive", file, "hang"]);
    await firstLine(first);
    const messageId = await firstLine(start(place, tenant, [children, "send"]));
    await vi.waitFor(() => expect(lines()).toEqual([[String(first.pid), messageId, "1"]]), wait);
    await killed(first);
    const second = start(place, tenant, [children, "receive", file]);
    await vi.waitFor(() => expect(lines()).toHaveLength(2), wait);
    expect(lines()[1]).toEqual([String(second.pid), messageId, "1"]);
  });

  it("of the framework's server leaves workflows that another one completes", { timeout: 120_000 }, async () => {
    const tenant = newTenant();
    const world = open(place, tenant);
    for (const afterMs of [0, 400, 1_200]) {
      const first = await framework(place, tenant);
      const run = await invoke(first.port, "sleepWorkflow");
      await delay(afterMs); // wherever it is by then, the result is the same
      await killed(first.child);
      const second = await framework(place, tenant);
      await vi.waitFor(async () => expect((await world.runs.get(run)).status).toBe("completed"), wait);
      const { output } = await world.runs.get(run);
      expect(await hydrateWorkflowReturnValue(output, run, undefined)).toBe(3);
      await killed(second.child);
    }
  });
}

async function framework(place: Place, tenant: string): Promise<{ child: ChildProcess; port: number }> {
  const child = start(place, tenant, [frameworkServer], {
    ...{ WORKFLOW_TARGET_WORLD: "durable-tape/world", CONTROL_FD: "3" },
    ...{ PORT: "" },
  });
  child.stdout!.resume();
  const [line] = (await once(createInterface({ input: child.stdio[3] as NodeJS.ReadableStream }), "line")) as [string];
  return { child, port: (JSON.parse(line) as { info: { port: number } }).info.port };
}

async function invoke(port: number, workflow: string): Promise<string> {
  const body = JSON.stringify({ file: "workflows/inline-execution.ts", workflow, args: [] });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`http://127.0.0.1:${port}/invoke`, { method: "POST", headers, body });
  return ((await answer.json()) as { runId: string }).runId;
}
