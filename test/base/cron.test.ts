import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Cron, parseCron } from "../../src/base/cron.ts";
import { zoneOf } from "../../src/base/zone.ts";

const cron = (expression: string, timeZone = "UTC"): Cron => {
  const parsed = parseCron(expression, timeZone);
  if ("fault" in parsed) throw new Error(parsed.fault);
  return parsed.cron;
};

const times = (of: Cron, from: string, count: number): string[] => {
  const found: string[] = [];
  for (let at = Date.parse(from); found.length < count; ) {
    at = of.next(at)!;
    found.push(new Date(at).toISOString().replace(":00.000Z", "Z"));
  }
  return found;
};

describe("cron", () => {
  it.each([
    ["0 3 * * *", "2026-01-01T03:00Z", ["2026-01-02T03:00Z", "2026-01-03T03:00Z"]],
    ["*/20 * * * *", "2026-01-01T00:05Z", ["2026-01-01T00:20Z", "2026-01-01T00:40Z"]],
    ["30 10 * * MON-FRI", "2026-01-02T12:00Z", ["2026-01-05T10:30Z", "2026-01-06T10:30Z"]],
    ["@monthly", "2026-01-02T12:00Z", ["2026-02-01T00:00Z", "2026-03-01T00:00Z"]],
    ["0 0 29 2 *", "2026-01-01T00:00Z", ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]],
    ["0 0 L * *", "2026-02-01T00:00Z", ["2026-02-28T00:00Z", "2026-03-31T00:00Z"]],
    ["  0   3 * *  * ", "2026-01-01T03:00Z", ["2026-01-02T03:00Z", "2026-01-03T03:00Z"]],
  ])("%s after %s", (expression, from, expected) => {
    expect(times(cron(expression), from, 2)).toEqual(expected);
  });

  it("is strictly after, also by a millisecond, and knows whole seconds", () => {
    const every = cron("*/5 * * * * *");
    expect([0, 1, 4_999, 5_000, 5_001].map((at) => every.next(at))).toEqual([5_000, 5_000, 5_000, 10_000, 10_000]);
  });

  it("last: the newest one in a stretch of time", () => {
    const daily = cron("0 3 * * *", "Europe/Zurich");
    const at = (text: string) => Date.parse(text);
    expect(daily.last(0, at("2026-07-01T00:59:59Z"))).toBe(at("2026-06-30T01:00:00Z"));
    expect(daily.last(0, at("2026-07-01T01:00:00Z"))).toBe(at("2026-07-01T01:00:00Z"));
    expect(daily.last(at("2026-06-30T01:00:00Z"), at("2026-06-30T01:00:00Z"))).toBe(at("2026-06-30T01:00:00Z"));
    expect(daily.last(at("2026-06-30T01:00:01Z"), at("2026-07-01T00:59:59Z"))).toBeUndefined();
  });

  it.each([
    ["60 * * * *", "minute"],
    ["0 3 * *", "five fields"],
    ["", "five fields"],
    ["2026-01-01T00:00:00", "five fields"],
    ["* * * * * * *", "five fields"],
    ["? * * * *", "use *"],
    ["0 0 30 2 *", "never due"],
    ["@reboot", "@reboot"],
    ["*/0 * * * *", "stepping"],
  ])("refuses %s", (expression, why) => {
    expect(parseCron(expression, "UTC")).toEqual({ fault: expect.stringContaining(why) });
  });

  it("refuses a time zone that does not exist", () => {
    expect(parseCron("* * * * *", "Europe/Zurch")).toEqual({ fault: expect.stringContaining("Europe/Zurch") });
  });
});

describe("when the clock on the wall is set", () => {
  it("a time of the day that does not exist is due once, at the first instant after the gap", () => {
    const halfPastTwo = cron("30 2 * * *", "Europe/Zurich");
    const expected = ["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"];
    expect(times(halfPastTwo, "2026-03-28T00:00Z", 3)).toEqual(expected);
    const instant = Date.parse("2026-03-29T01:00Z");
    expect([halfPastTwo.next(instant - 1), halfPastTwo.next(instant)]).toEqual([instant, Date.parse(expected[2]!)]);
    expect(times(cron("0,20,40 2 * * *", "Europe/Zurich"), "2026-03-28T02:00Z", 2)).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-30T00:00Z",
    ]);
    // One of several hours is no other than one alone.
    expect(times(cron("0 2,14 * * *", "America/New_York"), "2026-03-08T00:00Z", 2)).toEqual([
      "2026-03-08T07:00Z",
      "2026-03-08T18:00Z",
    ]);
  });

  it("a time of the day that exists twice is due once, at the first", () => {
    const halfPastTwo = cron("30 2 * * *", "Europe/Zurich");
    const expected = ["2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"];
    expect(times(halfPastTwo, "2026-10-24T00:00Z", 3)).toEqual(expected);
    // The same from instants in between: in the first of the doubled hours, and in the second.
    for (const instant of ["2026-10-25T00:45Z", "2026-10-25T01:00Z", "2026-10-25T01:15Z", "2026-10-25T01:45Z"]) {
      expect(times(halfPastTwo, instant, 1)).toEqual([expected[2]]);
    }
  });

  it("follows local time for intervals: no duplicate and no missing hour", () => {
    const quarter = cron("15 * * * *", "Europe/Zurich");
    expect(times(quarter, "2026-03-29T00:00Z", 3)).toEqual([
      "2026-03-29T00:15Z",
      "2026-03-29T01:15Z",
      "2026-03-29T02:15Z",
    ]);
    expect(times(quarter, "2026-10-24T23:30Z", 4)).toEqual([
      "2026-10-25T00:15Z",
      "2026-10-25T01:15Z",
      "2026-10-25T02:15Z",
      "2026-10-25T03:15Z",
    ]);
  });

  it("a zone that leaves a whole day out, and one that moves by half an hour", () => {
    expect(times(cron("0 12 * * *", "Pacific/Apia"), "2011-12-29T00:00Z", 3)).toEqual([
      "2011-12-29T22:00Z",
      "2011-12-30T10:00Z",
      "2011-12-30T22:00Z",
    ]);
    expect(times(cron("15 2 * * *", "Australia/Lord_Howe"), "2026-10-03T00:00Z", 2)).toEqual([
      "2026-10-03T15:30Z",
      "2026-10-04T15:15Z",
    ]);
  });

  it("agrees with a check of every minute", () => {
    const around = [
      "2026-03-29T01:00Z",
      "2026-10-25T01:00Z",
      "2026-03-08T07:00Z",
      "2026-11-01T06:00Z",
      "2026-04-04T15:00Z",
    ];
    const zones = ["Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"];
    const minutes = fc.uniqueArray(fc.integer({ min: 0, max: 59 }), { minLength: 1, maxLength: 3 });
    const hours = fc.option(fc.uniqueArray(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 3 }));
    const from = fc.integer({ min: -600, max: 300 });
    const property = fc.property(
      fc.constantFrom(...around),
      fc.constantFrom(...zones),
      minutes,
      hours,
      from,
      (centre, zone, m, h, offset) => {
        const begin = Date.parse(centre) + offset * 60_000;
        const end = begin + 12 * 3_600_000;
        const of = cron(`${m.join(",")} ${h?.join(",") ?? "*"} * * *`, zone);
        const found: number[] = [];
        for (let at = of.next(begin); at !== undefined && at <= end; at = of.next(at)) found.push(at);
        expect(found).toEqual(everyMinute(zone, m, h ?? undefined, begin, end));
      },
    );
    fc.assert(property, { numRuns: 100 });
  });
});

/** The written rule, read off the clock: walks over the wall's minutes and remembers which it has shown. */
function everyMinute(
  zoneName: string,
  minutes: number[],
  hours: number[] | undefined,
  begin: number,
  end: number,
): number[] {
  const zone = zoneOf(zoneName)!;
  const minute = 60_000;
  const matches = (wall: number): boolean => {
    const date = new Date(wall);
    return minutes.includes(date.getUTCMinutes()) && (hours?.includes(date.getUTCHours()) ?? true);
  };
  const found: number[] = [];
  const early = begin - 6 * 3_600_000;
  let highest = early + zone.offsetMs(early) - minute;
  for (let at = early; at <= end; at += minute) {
    const wall = at + zone.offsetMs(at);
    const left: number[] = [];
    for (let gone = highest + minute; gone < wall; gone += minute) left.push(gone);
    const shownBefore = wall <= highest;
    const due = hours === undefined ? matches(wall) : (!shownBefore && matches(wall)) || left.some(matches);
    highest = Math.max(highest, wall);
    if (due && at > begin) found.push(at);
  }
  return found;
}
