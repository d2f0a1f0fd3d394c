import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { get } from "node:http";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { DemoPage } from "../../src/cli/demo/agent/page.ts";
import { main } from "../../src/cli/main.ts";

const program = fileURLToPath(new URL("../../bin/durable-tape.js", import.meta.url));

interface Outcome {
  readonly code: number | string | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

function tape(...args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { timeout: 25_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}

function expectInOrder(stdout: string, texts: readonly RegExp[]): void {
  const lines = stdout.split("\n").map((line) => line.trim());
  const places = texts.map((text) => [String(text), lines.findIndex((line) => text.test(line))] as const);
  expect(places.filter(([, line]) => line < 0)).toEqual([]);
  const order = places.map(([, line]) => line);
  expect(order).toEqual(order.toSorted((x, y) => x - y));
}

it("demo zombie: every write of the resumed owner is rejected", async () => {
  const { code, stdout, stderr } = await tape("demo", "zombie");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expectInOrder(stdout, [
    /^worker-a holds the lease: token 1, reason start$/,
    /^worker-a wrote: reserve the funds$/,
    /SIGSTOP/,
    /^the lease has expired$/,
    /^worker-b holds the lease: token 2, reason recovery$/,
    /^worker-b wrote: book the transfer$/,
    /^worker-b wired the money$/,
    /SIGCONT/,
    /^worker-a write rejected \(book the transfer\): TAPE_FENCED: .*held by worker-b/,
    /^worker-a write rejected \(heartbeat\): TAPE_FENCED: /,
    /^worker-a write rejected \(end of the run\): TAPE_FENCED: /,
    /^worker-b wrote: end of the run$/,
    /^token 1 +worker-a +agent +started .* \(start\) +ended .* \(expired\)/,
    /^token 2 +worker-b +agent +started .* \(recovery\) +ended .* \(released\)/,
    /^3 of 3 writes of the zombie rejected; the transfer is booked 1 time$/,
    /^world: 1 wire$/,
  ]);
  expect(stdout).not.toContain("\u001b["); // no colours without a terminal
});

it("demo agent: its page continues although two workers are killed", async () => {
  const { code, stdout, stderr } = await tape("demo", "agent");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expectInOrder(stdout, [
    /^the page: http:\/\/127\.0\.0\.1:\d+$/,
    /^worker-a called the model, turn 1$/,
    /^worker-a called the model, turn 2$/,
    /^the page shows: I look up the invoice first\. It is due today, so$/,
    /killed in mid-sentence \(SIGKILL\)$/,
    /^worker-b called the model, turn 2$/,
    /^worker-b wired the money$/,
    /^the page took back 1 half sentence and shows: It is due today, so I wire 250,000 to the supplier now\.$/,
    /killed after the wire \(SIGKILL\)$/,
    /^the bank says: +1 wire$/,
    /^worker-c did not wire again: it observed the wire at the bank$/,
    /^worker-c called the model, turn 3$/,
    /^the page shows: I look up the invoice first\. It is due .* now\. Done\. Invoice 2026-117 is paid, .* books\.$/,
    /^token 1 +worker-a .* \(expired\)/,
    /^token 2 +worker-b .* \(expired\)/,
    /^token 3 +worker-c .* \(released\)/,
    /^run: COMPLETED$/,
    /^model calls: 3, and 1 lost; 1 charged as presumed$/,
    /^world: 1 wire$/,
  ]);
  expect(stdout.match(/called the model/g)).toHaveLength(4);
});

it("the page of demo agent is for this machine, and for its own address only", async () => {
  const follow = async function* () {
    yield { type: "ended", status: "COMPLETED", cursor: "1.0" } as const;
  };
  const page = await DemoPage.open({ streams: { follow } }, "chat-7");
  onTestFinished(() => page.close());
  const index = await fetch(page.url);
  expect(index.headers.get("content-security-policy")).toBe("default-src 'self'");
  expect(await index.text()).toContain('<script src="/page.js">');
  expect((await fetch(`${page.url}/other`)).status).toBe(404);
  expect(await (await fetch(`${page.url}/events`)).text()).toContain('"type":"finish"');
  const { port } = new URL(page.url);
  const foreign = await new Promise((resolve) =>
    get({ host: "127.0.0.1", port, headers: { host: `evil.example:${port}` } }, ({ statusCode }) =>
      resolve(statusCode),
    ),
  );
  expect(foreign).toBe(421);
});

it("demo crash-resume: wires once although a worker dies before recording it", async () => {
  const { code, stdout, stderr } = await tape("demo", "crash-resume");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expectInOrder(stdout, [
    /^worker-a called the model for a plan$/,
    /^the run waits at gate cfo with \{"account":"reserve","amount":250000\}$/,
    /^worker-a wired the money$/,
    /SIGKILL/,
    /^the journal says: bank\.wire DISPATCHED$/,
    /^the bank says: +1 wire$/,
    /^the lease has expired$/,
    /^worker-b did not wire again: it observed the wire at the bank$/,
    /^worker-b finished the run: \{"done":true,/,
    /^run +token \d+ +effect\.dispatched$/,
    /^run +token \d+ +effect\.settled +UNKNOWN, lease_lost$/,
    /^item +token \d+ +effect\.observed +confirmed$/,
    /^item +token \d+ +effect\.settled +CONFIRMED, observed$/,
    /^run +token \d+ +effect\.received +CONFIRMED/,
    /^token \d+ +worker-a .* \(expired\)/,
    /^token \d+ +worker-b .* \(released\)/,
    /^run: COMPLETED$/,
    /^world: 1 wire$/,
  ]);
  expect(stdout.match(/called the model/g)).toHaveLength(1);
  const page = readFileSync(new URL("../../docs/dev.md", import.meta.url), "utf8");
  const [, excerpt] = /From `demo crash-resume`:\n\n```text\n(.*?)```/s.exec(page) ?? [];
  expect(stdout).toContain(excerpt ?? "an excerpt in docs/dev.md");
});

it("demo reactors: all five reactors finish a trip whose workers die", async () => {
  const { code, stdout, stderr } = await tape("demo", "reactors");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expectInOrder(stdout, [
    /^worker-a: book flight$/,
    /^2\. Worker A is killed \(SIGKILL\)$/,
    /^the journal says: airline\.book DISPATCHED$/,
    /^the world says: +book flight$/,
    /^the lease has expired$/,
    /^worker-b: observe book flight \(found\)$/,
    /^the journal says: airline\.book CONFIRMED$/,
    /^4\. Worker B is killed too/,
    /^the timer is due$/,
    /^worker-c: book hotel$/,
    /^worker-c: cancel hotel$/,
    /^worker-c: cancel flight$/,
    /^outbox +worker-a +called upstream: airline\.book$/,
    /^reconciler +worker-b +settled UNKNOWN \(lease_lost\): airline\.book$/,
    /^reconciler +worker-b +observed \(confirmed\): airline\.book$/,
    /^reconciler +worker-b +settled CONFIRMED \(observed\): airline\.book$/,
    /^recovery +worker-b +resumed the run \(wake\)$/,
    /^timers +- +fired the sleep$/,
    /^compensation +worker-c +settled COMPENSATED \(returned\): hotel\.book \(compensation\)$/,
    /^compensation +worker-c +settled COMPENSATED \(returned\): airline\.book \(compensation\)$/,
    /^recovery +worker-c +ended the run: COMPENSATED$/,
    /^run: COMPENSATED$/,
    /^reactors involved: 5 of 5$/,
    /^world: book flight, book hotel, cancel hotel, cancel flight$/,
  ]);
});

it("prints its version", async () => {
  expect(await tape("--version")).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: "" });
});

it("exits 2 with a suggestion for an unknown command", async () => {
  const { code, stdout, stderr } = await tape("dmeo");
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toBe(
    "TAPE_BAD_INPUT: unknown command dmeo; did you mean demo?\nRun durable-tape --help for all commands and options.\n",
  );
});

describe("main", () => {
  async function run(...args: string[]): Promise<Outcome> {
    const texts = { stdout: "", stderr: "" };
    const spies = (["stdout", "stderr"] as const).map((stream) =>
      vi.spyOn(process[stream], "write").mockImplementation((text) => {
        texts[stream] += String(text);
        return true;
      }),
    );
    try {
      return { code: await main(args), ...texts };
    } finally {
      for (const spy of spies) spy.mockRestore();
    }
  }

  it.each([["--help"], ["-h"], ["help"], []])("%s lists the commands", async (...args) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("durable-tape demo crash-resume");
    expect(stdout).toContain("durable-tape demo reactors");
    expect(stdout).toContain("durable-tape demo zombie");
  });

  it.each([
    [["--verison"], "unknown command --verison; did you mean --version?\n"],
    [["abracadabra"], "unknown command abracadabra\n"],
    [["demo"], "demo: missing subcommand, one of "],
    [["demo", "zomby"], "; did you mean zombie?\n"],
    [["demo", "zombie", "now"], "demo zombie: unexpected argument now\n"],
    [["test/**/*.js"], "the test runner called tape is another package"],
  ])("%j is a usage error", async (args, message) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).toContain("Run durable-tape --help");
  });
});
