import { readFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { drawFrame, endOf, plainPaint, terminalPaint, worldLine } from "../../src/cli/dev/frame.ts";
import { logLineOf, printLogLine } from "../../src/cli/dev/log-line.ts";
import { type BandRecord, drawBand, type Paint } from "../../src/cli/dev/ownership-band.ts";
import type { Payment } from "../../src/cli/dev/treasury.ts";
import type { TermView } from "../../src/model/lease.ts";

const stats = { reactor: "recovery", renewals: 0, longestGapMs: 0, progress: 0 };
const term = (
  token: number,
  label: string,
  from: number,
  to: number | undefined,
  more: Partial<TermView>,
): TermView => ({
  ...{ token: BigInt(token), owner: `${label}/1`, label, startedAt: from, startReason: "start", ...stats },
  ...(to === undefined ? {} : { endedAt: to, endReason: "released" }),
  ...more,
});
const record = (at: number, kind: string, data: object = {}) => ({ at, kind, data }) as BandRecord;

const a = term(1, "worker-a", 1_000, 2_000, { endReason: "expired" });
const b = term(3, "worker-b", 2_000, undefined, { startReason: "recovery" });

describe("the band", () => {
  it("draws a segment and a line per term, and marks takeovers", () => {
    const records = [
      record(1_500, "effect.dispatched"),
      record(2_000, "effect.settled", { to: "UNKNOWN" }),
      record(2_500, "effect.settled", { to: "CONFIRMED" }),
      record(1_200, "step.done"),
      record(3_000, "run.ended"),
    ];
    expect(drawBand({ terms: [a, b], records, now: 3_000, width: 40 })).toEqual([
      "          →         ?         ✓        ■",
      "┣1 worker-a ━━━━━━━━▶3 worker-b ━━━━━━━━",
      "token 1  worker-a  start → expired        1 s".slice(0, 39).concat("…"),
      "token 3  worker-b  recovery → still held  1 s".slice(0, 39).concat("…"),
    ]);
    expect(drawBand({ terms: [a, b], records, now: 3_000, width: 60 }).slice(2)).toEqual([
      "token 1  worker-a  start → expired        1 s",
      "token 3  worker-b  recovery → still held  1 s",
    ]);
  });

  it("widens the last segment while the lease is held", () => {
    const cells = (now: number) => drawBand({ terms: [a, b], records: [], now, width: 60 })[1]!.indexOf("▶");
    expect([2_000, 2_500, 3_000, 5_000].map(cells)).toEqual([59, 40, 30, 15]);
  });

  it("dots time in which the lease was free, also at the end", () => {
    const early = term(1, "w", 0, 100, {});
    const late = term(3, "w", 300, 400, { startReason: "wake" });
    expect(drawBand({ terms: [early, late], records: [], now: 500, width: 20 })[1]).toBe("┣1 w········┣3 w····");
  });

  it("has exactly the requested width and shows every term that fits", () => {
    for (let width = 4; width <= 90; width += 7) {
      for (let many = 1; many <= 12; many++) {
        const terms = Array.from({ length: many }, (_, k) =>
          term(k * 2 + 1, `worker-${k}`, k * k * 1_000, k * k * 1_000 + (k % 3), {
            startReason: k % 2 ? "recovery" : "wake",
          }),
        );
        const [, band] = drawBand({ terms, records: [], now: many * many * 1_000, width });
        expect(band, `${many} terms in ${width}`).toHaveLength(width);
        expect(band!.match(/[┣▶]/g)).toHaveLength(Math.min(many, Math.floor(width / 2)));
      }
    }
  });

  it.each(["docs/dev.md", "README.md"])("draws the picture in %s", (page) => {
    const terms = [
      term(1, "worker-a", 0, 1_200, {}),
      term(3, "worker-a", 1_500, 5_700, { startReason: "wake", endReason: "expired" }),
      term(4, "worker-b", 5_700, 6_500, { startReason: "recovery" }),
    ];
    const records = [
      record(1_600, "effect.dispatched"),
      record(5_750, "effect.settled", { to: "UNKNOWN" }),
      record(6_100, "effect.settled", { to: "CONFIRMED" }),
      record(6_500, "run.ended"),
    ];
    const drawn = drawBand({ terms, records, now: 6_500, width: 64 }).join("\n");
    expect(readFileSync(new URL(`../../${page}`, import.meta.url), "utf8")).toContain(`\`\`\`text\n${drawn}\n`);
  });

  it("gives each owner one colour", () => {
    const paint: Paint = { owner: (number, text) => `<${number}:${text}>`, dim: (text) => text };
    const repeated = term(5, "worker-a", 3_000, 4_000, { startReason: "wake" });
    const [, band] = drawBand(
      { terms: [a, { ...b, endedAt: 3_000 }, repeated], records: [], now: 4_000, width: 36 },
      paint,
    );
    expect(band!.match(/<\d/g)).toEqual(["<0", "<1", "<0"]);
  });

  it("escapes control characters of stored text", () => {
    const evil = term(1, "w\u001b[2J\n", 0, 1_000, {});
    const drawn = drawBand({ terms: [evil], records: [], now: 1_000, width: 60 }).join("|");
    expect(drawn).toBe(stripVTControlCharacters(drawn));
    expect(drawn).not.toContain("\n");
  });

  it("says so when the run was never held", () => {
    expect(drawBand({ terms: [], records: [], now: 0, width: 60 })).toEqual(["not held yet"]);
  });
});

const payment: Payment = {
  ...{ run: "payment-1", invoice: "sweep-payment-1", fault: "kill", sender: "worker-a", responded: true },
  ...{ stopped: undefined, status: "RUNNING", wire: "UNKNOWN", terms: [a, b], records: [], lease: undefined },
  ...{ endedAt: undefined, wires: 1 },
};

describe("the frame", () => {
  it("fits the height and width of every terminal", () => {
    const head = ["Tape dev", `  page    ${"x".repeat(200)}`, "  store", "  runner", "  try"];
    const log = Array.from({ length: 50 }, (_, k) => `${k} ${"y".repeat(k * 5)}`);
    const payments = Array.from({ length: 9 }, (_, k) => ({ ...payment, run: `payment-${k + 1}` }));
    for (const columns of [40, 80, 100, 240]) {
      for (const rows of [10, 16, 24, 60]) {
        const input = { head, payments, log, keys: "k · q quit", workers: ["a", "b"], now: 3_000, columns, rows };
        const lines = drawFrame(input, terminalPaint).map((line) => stripVTControlCharacters(line));
        expect(lines.length).toBeLessThan(rows);
        expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
        expect(lines.at(-1)).toBe("k · q quit");
        if (rows >= 24)
          expect(lines.join("\n")).toMatch(/payment-9 {2}RUNNING[\s\S]*▶3[\s\S]*world: 1 wire[\s\S]*49 y/);
      }
    }
  });

  it("marks one wire as right once the run has ended, and two as wrong", () => {
    const paint = { ...plainPaint, good: (text: string) => `+${text}`, bad: (text: string) => `-${text}` };
    expect(worldLine({ ...payment, wires: 0 }, paint)).toBe("world: 0 wires");
    expect(worldLine({ ...payment, wires: 0, endedAt: 1 }, paint)).toBe("-world: 0 wires");
    expect(worldLine({ ...payment, endedAt: 1 }, paint)).toBe("+world: 1 wire");
    expect(worldLine({ ...payment, wires: 2 }, paint)).toBe("-world: 2 wires");
    expect(endOf(payment)).toBe("RUNNING, unfinished · world: 1 wire");
    expect(endOf({ ...payment, status: "COMPLETED", endedAt: 1 })).toBe("COMPLETED · world: 1 wire");
  });
});

it("prints a JSON log line as text, and leaves other text alone", () => {
  const line = '{"at":"2026-11-15T12:00:01.000Z","level":"warn","event":"run.stuck","run":"r-1","error":"a b","n":[1]}';
  expect(printLogLine(logLineOf(line)!)).toBe('12:00:01 warn run.stuck run=r-1 error="a b" n=[1]');
  for (const other of ["hello", "{ not json", '{"level":"warn"}']) expect(logLineOf(other)).toBeUndefined();
});
