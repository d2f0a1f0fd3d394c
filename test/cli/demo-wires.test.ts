import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const program = fileURLToPath(new URL("../../bin/durable-tape.js", import.meta.url));

function demo(...args: string[]): Promise<{ code: unknown; lines: string[]; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, "demo", ...args], { timeout: 25_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, lines: stdout.trimEnd().split("\n"), stderr }),
    );
  });
}

/** The indexes of these lines, in order; -1 for a missing one. */
function indexesOf(lines: readonly string[], patterns: readonly RegExp[]): number[] {
  let from = 0;
  return patterns.map((pattern) => {
    const index = lines.findIndex((line, k) => k >= from && pattern.test(line.trim()));
    if (index >= 0) from = index + 1;
    return index;
  });
}

it("demo unknown: observes a payment with a lost response, and wires once", async () => {
  const { code, lines, stderr } = await demo("unknown");
  expect({ code, stderr, last: lines.at(-1) }).toEqual({ code: 0, stderr: "", last: "world: 1 wire" });
  const indexes = indexesOf(lines, [
    /^the journal says: bank\.wire DISPATCHED$/,
    /^the bank says: +1 wire$/,
    /^the journal says: bank\.wire UNKNOWN, under token \d+; the run waits$/,
    /^worker-a observed: the wire exists$/,
    /^run +token \d+ +effect\.settled +UNKNOWN, ack_lost$/,
    /^item +token \d+ +effect\.observed +confirmed$/,
    /^item +token \d+ +effect\.settled +CONFIRMED, observed$/,
    /^run: COMPLETED$/,
  ]);
  expect(indexes).not.toContain(-1);
});

it("demo zombie --unfenced: the zombie writes, and the money moves twice", async () => {
  const { code, lines, stderr } = await demo("zombie", "--unfenced");
  expect({ code, stderr, last: lines.at(-1) }).toEqual({ code: 0, stderr: "", last: "world: 2 wires" });
  const indexes = indexesOf(lines, [
    /^For comparison only: .* a plain file that compares no token\.$/,
    /^worker-b holds the lease: token 2, reason recovery$/,
    /^worker-b wired the money$/,
    /SIGCONT/,
    /^worker-a wrote: book the transfer$/,
    /^worker-a wired the money$/,
    /^token 2 +worker-b +book the transfer$/,
    /^token 1 +worker-a +book the transfer$/,
    /^token 1 +worker-a +agent .* \(expired\)/,
  ]);
  expect(indexes).not.toContain(-1);
});
