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

it("demo zombie: the paused owner wakes up and everything it writes is refused", async () => {
  const { code, stdout, stderr } = await tape("demo", "zombie");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const lines = stdout.split("\n").map((line) => line.trim());
  const at = (text: RegExp): number => lines.findIndex((line) => text.test(line));
  const tellingLines = [
    /^worker-a holds the lease: token 1, because of start$/,
    /^worker-a wrote reserve the funds$/,
    /SIGSTOP/,
    /^the lease has run out$/,
    /^worker-b holds the lease: token 2, because of recovery$/,
    /^worker-b wrote book the transfer$/,
    /SIGCONT/,
    /^worker-a refused book the transfer: TAPE_FENCED: token 1 is not the current one \(2, held by worker-b\)$/,
    /^worker-a refused heartbeat: TAPE_FENCED: /,
    /^worker-a refused end of the run: TAPE_FENCED: /,
    /^worker-b wrote end of the run$/,
    /^token 1 +worker-a +agent +began .* \(start\) +ended .* \(expired\)/,
    /^token 2 +worker-b +agent +began .* \(recovery\) +ended .* \(released\)/,
    /^3 of 3 writes of the zombie refused; the transfer is booked 1 time$/,
  ].map((text) => [String(text), at(text)] as const);
  expect(tellingLines.filter(([, line]) => line < 0)).toEqual([]);
  const order = tellingLines.map(([, line]) => line);
  expect(order).toEqual(order.toSorted((x, y) => x - y));
  expect(stdout).not.toContain("\u001b["); // no colours where nobody looks
});

it("says its version", async () => {
  expect(await tape("--version")).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: "" });
});

it("an unknown command: says so with a suggestion, and exits with 2", async () => {
  const { code, stdout, stderr } = await tape("dmeo");
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toBe("there is no command dmeo; did you mean demo?\nRun durable-tape --help to see what there is.\n");
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
    expect(stdout).toContain("durable-tape demo zombie");
  });

  it.each([
    [["--verison"], "there is no command --verison; did you mean --version?\n"],
    [["abracadabra"], "there is no command abracadabra\n"],
    [["demo"], "demo knows one story: zombie\n"],
    [["demo", "zomby"], "demo knows one story: zombie, not zomby\n"],
    [["demo", "zombie", "now"], "demo knows one story: zombie, not zombie now\n"],
  ])("%j is a misuse", async (args, message) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).toContain("Run durable-tape --help");
  });
});
