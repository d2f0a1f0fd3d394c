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

/** The places of these lines, in order; -1 for one that is missing. */
function places(lines: readonly string[], wanted: readonly RegExp[]): number[] {
  let from = 0;
  return wanted.map((text) => {
    const place = lines.findIndex((line, k) => k >= from && text.test(line.trim()));
    if (place >= 0) from = place + 1;
    return place;
  });
}

it("demo unknown: the answer is lost, nobody asks again, somebody looks, and it wired once", async () => {
  const { code, lines, stderr } = await demo("unknown");
  expect({ code, stderr, last: lines.at(-1) }).toEqual({ code: 0, stderr: "", last: "world: 1 wire" });
  const told = places(lines, [
    /^the journal says: bank\.wire DISPATCHED$/,
    /^the bank says: +1 wire$/,
    /^the journal says: bank\.wire UNKNOWN, under token \d+; the run waits$/,
    /^worker-a looked: the wire is there$/,
    /^run +token \d+ +effect\.settled +UNKNOWN, ack_lost$/,
    /^act +token \d+ +effect\.observed +confirmed$/,
    /^act +token \d+ +effect\.settled +CONFIRMED, observed$/,
    /^run: COMPLETED$/,
  ]);
  expect(told).not.toContain(-1);
});

it("demo zombie --unfenced: the same zombie without the fence writes, and the money moves twice", async () => {
  const { code, lines, stderr } = await demo("zombie", "--unfenced");
  expect({ code, stderr, last: lines.at(-1) }).toEqual({ code: 0, stderr: "", last: "world: 2 wires" });
  const told = places(lines, [
    /^For comparison only: .* a plain file that compares no token\.$/,
    /^worker-b holds the lease: token 2, because of recovery$/,
    /^worker-b wired the money$/,
    /SIGCONT/,
    /^worker-a wrote book the transfer$/,
    /^worker-a wired the money$/,
    /^token 2 +worker-b +book the transfer$/,
    /^token 1 +worker-a +book the transfer$/,
    /^token 1 +worker-a +agent .* \(expired\)/,
  ]);
  expect(told).not.toContain(-1);
});
