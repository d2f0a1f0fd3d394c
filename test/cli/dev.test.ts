import { existsSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { fileLedger } from "../../src/cli/demo/treasury/ledger.ts";
import { Dev, processesWith } from "./dev-stage.ts";

const anyPort = ["--listen", "127.0.0.1:0"];

/** The folder of the store and the world, as the first lines name it. */
async function folderOf(dev: Dev): Promise<string> {
  return dirname((await dev.says(/store +sqlite:(\S+)/))[1]!);
}

it("injects faults by key on a terminal, and every payment wires once", { timeout: 90_000 }, async () => {
  const dev = Dev.inTerminal(anyPort, tmpdir());
  const folder = await folderOf(dev);
  const wires = (payment: string) =>
    fileLedger(join(folder, "world.jsonl"))
      .entries()
      .filter(({ kind, subject }) => kind === "wire" && subject === `sweep-${payment}`).length;
  const ends = (payment: string, from: number) =>
    dev.says(new RegExp(`${payment} +COMPLETED · bank\\.wire CONFIRMED[\\s\\S]*world: 1 wire`), from);

  await dev.says(/payment-1 starts/); // without a key
  dev.press("k");
  const killed = (await dev.says(/(worker-[ab]): killed \(SIGKILL\)/))[1]!;
  expect(wires("payment-1")).toBe(1); // the money has moved
  const observer = (await dev.says(/(worker-\w): did not wire again; observed the wire/))[1]!;
  expect(observer).not.toBe(killed);
  await ends("payment-1", 0);
  expect(dev.text()).toMatch(/token \d+ +worker-[ab] +(start|wake) → expired/);
  expect(dev.text()).toMatch(/token \d+ +worker-\w +recovery → released/);
  expect(dev.text()).toMatch(/(┣|▶)\d/); // the band has terms; one that is short beside the others has no place in it
  expect(wires("payment-1")).toBe(1);

  const second = dev.mark();
  dev.press("z");
  const stopped = (await dev.says(/payment-2 starts[\s\S]*?(worker-\w): paused \(SIGSTOP\)/, second))[1]!;
  const rejection = await dev.says(/(worker-\w): write rejected: TAPE_FENCED: /, second);
  expect(rejection[1]).toBe(stopped);
  await ends("payment-2", second);
  expect(dev.text(second)).toContain(`${stopped}: resumes (SIGCONT)`);
  expect(dev.text(second)).not.toContain("WROTE");
  expect(wires("payment-2")).toBe(1);

  const third = dev.mark();
  dev.press("u");
  await dev.says(/payment-3 starts[\s\S]*worker-\w: the response is lost; UNKNOWN/, third);
  await dev.says(/the response is lost;.*\n.*worker-\w: did not wire again; observed the wire/, third);
  await ends("payment-3", third);
  expect(wires("payment-3")).toBe(1);

  const fourth = dev.mark();
  dev.press("o");
  const page = await fetch((await dev.says(/the page is at (http:\S+)/, fourth))[1]!);
  expect(page.status).toBe(200);
  expect(page.headers.get("content-type")).toContain("text/html");
  expect(page.headers.get("content-security-policy")).toMatch(/default-src '(none|self)'/);

  const last = dev.mark();
  dev.press("q");
  expect(await dev.ended()).toBe(0);
  const end = [1, 2, 3].map((n) => `payment-${n}: COMPLETED\nworld: 1 wire\n`).join("\n");
  expect(dev.text(last).endsWith(end)).toBe(true);
  expect(processesWith(folder)).toEqual([]);
  expect(existsSync(folder)).toBe(false);
});

it("kills the worker of one payment and exits without a terminal", async () => {
  const other = createServer();
  onTestFinished(() => void other.close());
  await new Promise<void>((done) => void other.listen(0, "127.0.0.1", done));
  const { port } = other.address() as AddressInfo;
  const dev = Dev.plain(["--listen", `127.0.0.1:${port}`], tmpdir());
  expect(await dev.ended()).toBe(0);
  const text = dev.text();
  const [, used] = /page +http:\/\/127\.0\.0\.1:(\d+) {2}\(port (\d+) is in use\)/.exec(text) ?? [];
  expect(Number(used)).toBeGreaterThan(port);
  expect(text).toContain(`(port ${port} is in use)`);
  expect(text).toMatch(/worker-[ab]: killed \(SIGKILL\)/);
  expect(text).toMatch(/┣.*▶.*\n +token \d+ +worker-[ab] +start → (released|expired)/);
  expect(text.endsWith("payment-1: COMPLETED\nworld: 1 wire\n")).toBe(true);
  expect(dev.raw).not.toContain("\u001b["); // no colours without a terminal
});

it("drains, exits with 0 and leaves no process on SIGTERM during a payment", async () => {
  const dev = Dev.plain(anyPort, tmpdir());
  const folder = await folderOf(dev);
  await dev.says(/payment-1 starts/);
  expect(processesWith(folder).length).toBeGreaterThan(0);
  dev.process.kill("SIGTERM");
  expect(await dev.ended()).toBe(0);
  expect(dev.text()).toContain("stopping: the workers drain");
  expect(dev.text()).toMatch(/world: [01] wires?\n$/);
  expect(processesWith(folder)).toEqual([]);
});

it("resumes a paused zombie on q, and pays once", async () => {
  const dev = Dev.inTerminal(anyPort, tmpdir());
  const folder = await folderOf(dev);
  await dev.says(/payment-1 starts/);
  dev.press("z");
  await dev.says(/worker-\w: paused \(SIGSTOP\)/);
  dev.press("q");
  expect(await dev.ended()).toBe(0);
  expect(dev.text()).toMatch(/payment-1: [A-Z]+(, unfinished)?\nworld: 1 wire\n$/);
  expect(processesWith(folder)).toEqual([]);
});

it("leaves no process when it is killed", async () => {
  const dev = Dev.plain(anyPort, tmpdir());
  const folder = await folderOf(dev);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  await dev.says(/payment-1 starts/);
  expect(processesWith(folder).length).toBeGreaterThan(0);
  dev.process.kill("SIGKILL");
  await expect.poll(() => processesWith(folder), { timeout: 20_000 }).toEqual([]);
});

it("is what npm start runs", () => {
  expect(manifest.scripts.start).toBe("node bin/durable-tape.js dev");
});
