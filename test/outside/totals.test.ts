import { describe, expect, it } from "vitest";
import { sumOf, totalsIn } from "../../tools/outside/totals.ts";

const good = { passed: 3, failed: 0, skipped: 1 };
const broken = { passed: 0, failed: 1, skipped: 0 };

describe("the totals of an outside suite", () => {
  it("are its last line", () => {
    expect(totalsIn(`noise\n{"passed":9}\n${JSON.stringify(good)}\n`, 0)).toEqual(good);
    expect(totalsIn(`${JSON.stringify({ ...good, failed: 2 })}\n`, 1)).toEqual({ ...good, failed: 2 });
  });

  it.each([
    ["no output", "", 0],
    ["a last line that is no JSON", `${JSON.stringify(good)}\nTypeError: x`, 0],
    ["totals without a number", '{"passed":3,"failed":0}', 0],
  ])("are one failure with %s", (_, output, code) => expect(totalsIn(output, code)).toEqual(broken));

  it("have a failure if the program ends badly without one", () => {
    expect(totalsIn(JSON.stringify(good), 1)).toEqual({ ...good, failed: 1 });
    expect(totalsIn(JSON.stringify(good), null)).toEqual({ ...good, failed: 1 });
  });

  it("add up", () => expect(sumOf([good, good, broken])).toEqual({ passed: 6, failed: 1, skipped: 2 }));
});
