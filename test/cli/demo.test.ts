import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import manifest from "../../package.json" with { type: "json" };
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

it("demo zombie: the paused owner wakes up and everything it writes is refused", async () => {
  const { code, stdout, stderr } = await tape("demo", "zombie");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expectInOrder(stdout, [
    /^worker-a holds the lease: token 1, because of start$/,
    /^worker-a wrote reserve the funds$/,
    /SIGSTOP/,
    /^the lease has run out$/,
    /^worker-b holds the lease: token 2, because of recovery$/,
    /^worker-b wrote book the transfer$/,
    /^worker-b wired the money$/,
    /SIGCONT/,
    /^worker-a refused book the transfer: TAPE_FENCED: token 1 is not the current one \(2, held by worker-b\)$/,
    /^worker-a refused heartbeat: TAPE_FENCED: /,
    /^worker-a refused end of the run: TAPE_FENCED: /,
    /^worker-b wrote end of the run$/,
    /^token 1 +worker-a +agent +began .* \(start\) +ended .* \(expired\)/,
    /^token 2 +worker-b +agent +began .* \(recovery\) +ended .* \(released\)/,
    /^3 of 3 writes of the zombie refused; the transfer is booked 1 time$/,
    /^world: 1 wire$/,
  ]);
  expect(stdout).not.toContain("\u001b["); // no colours where nobody looks
});

it("demo crash-resume: killed after the wire and before its record, and it wires once", async () => {
  const { code, stdout, stderr } = await tape("demo", "crash-resume");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expectInOrder(stdout, [
    /^worker-a asked the model for a plan$/,
    /^the run waits at the gate cfo, which shows \{"account":"reserve","amount":250000\}$/,
    /^worker-a wired the money$/,
    /SIGKILL/,
    /^the journal says: bank\.wire DISPATCHED$/,
    /^the bank says: +1 wire$/,
    /^the lease has run out$/,
    /^worker-b did not wire again: it looked, and found the wire at the bank$/,
    /^worker-b finished the run: \{"done":true,/,
    /^run +token \d+ +effect\.dispatched$/,
    /^run +token \d+ +effect\.settled +UNKNOWN, lease_lost$/,
    /^act +token \d+ +effect\.observed +confirmed$/,
    /^act +token \d+ +effect\.settled +CONFIRMED, observed$/,
    /^run +token \d+ +effect\.received +CONFIRMED/,
    /^token \d+ +worker-a .* \(expired\)/,
    /^token \d+ +worker-b .* \(released\)/,
    /^run: COMPLETED$/,
    /^world: 1 wire$/,
  ]);
  expect(stdout.match(/asked the model/g)).toHaveLength(1);
});

it("demo reactors: two workers are killed, and all five reactors bring the trip to its right end", async () => {
  const { code, stdout, stderr } = await tape("demo", "reactors");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expectInOrder(stdout, [
    /^worker-a book flight$/,
    /^2\. Worker A is killed \(SIGKILL\)$/,
    /^the journal says: airline\.book DISPATCHED$/,
    /^the world says: +book flight$/,
    /^its lease has run out$/,
    /^worker-b look for book flight: found$/,
    /^the journal says: airline\.book CONFIRMED$/,
    /^4\. Worker B is killed too/,
    /^the timer is due$/,
    /^worker-c book hotel$/,
    /^worker-c cancel hotel$/,
    /^worker-c cancel flight$/,
    /^outbox +worker-a +asked the world: airline\.book$/,
    /^reconciler +worker-b +wrote UNKNOWN \(lease_lost\): airline\.book$/,
    /^reconciler +worker-b +looked, confirmed: airline\.book$/,
    /^reconciler +worker-b +wrote CONFIRMED \(observed\): airline\.book$/,
    /^recovery +worker-b +took the run over \(wake\)$/,
    /^timers +- +fired the sleep$/,
    /^compensation +worker-c +wrote COMPENSATED \(returned\): hotel\.book, the undoing$/,
    /^compensation +worker-c +wrote COMPENSATED \(returned\): airline\.book, the undoing$/,
    /^recovery +worker-c +ended the run: COMPENSATED$/,
    /^run: COMPENSATED$/,
    /^reactors at work: 5 of 5$/,
    /^world: book flight, book hotel, cancel hotel, cancel flight$/,
  ]);
});

it("says its version", async () => {
  expect(await tape("--version")).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: "" });
});

it("an unknown command: says so with a suggestion, and exits with 2", async () => {
  const { code, stdout, stderr } = await tape("dmeo");
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toBe(
    "TAPE_BAD_INPUT: there is no command dmeo; did you mean demo?\nRun durable-tape --help to see what there is.\n",
  );
});

describe("in this process, which is quicker", () => {
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

  it.each([["--help"], ["-h"], ["help"], []])("%s says what there is", async (...args) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("durable-tape demo crash-resume");
    expect(stdout).toContain("durable-tape demo reactors");
    expect(stdout).toContain("durable-tape demo zombie");
  });

  it.each([
    [["--verison"], "there is no command --verison; did you mean --version?\n"],
    [["abracadabra"], "there is no command abracadabra\n"],
    [["demo"], "demo knows "],
    [["demo", "zomby"], ", not zomby; did you mean zombie?\n"],
    [["demo", "zombie", "now"], "demo zombie takes no now\n"],
    [["test/**/*.js"], "the test tool called tape is another package"],
  ])("%j is a misuse", async (args, message) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).toContain("Run durable-tape --help");
  });
});
