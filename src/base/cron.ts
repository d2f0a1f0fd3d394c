import { Cron as Pattern } from "croner";
import { nextShift, recentShifts, type Zone, zoneOf } from "./zone.ts";

/**
 * When a cron expression is due in a time zone.
 *
 * The rule for the two days of the year on which local time shifts. An expression that names its hours
 * ("30 2 * * *", "0 8,14 * * *") means times of the day:
 *
 * - a time that does not exist is due at the first instant after the gap, and all times inside one gap are due once;
 * - a time that exists twice is due once, at the first.
 *
 * An expression whose hour is `*` or a step of it ("*\/15 * * * *", "0 *\/6 * * *") means an interval. It follows local
 * time: a time that does not exist is left out, and a time that exists twice is due twice.
 */
export interface Cron {
  readonly expression: string;
  readonly timeZone: string;
  /** The first time strictly after the given one, in milliseconds since 1970; undefined if there is none. */
  next(after: number): number | undefined;
  /** The last time not later than `until`, if it is not earlier than `from`. */
  last(from: number, until: number): number | undefined;
  /** Upper bound of its density: the shortest gap between two of its times, and their number on a matching day. */
  density(): Density;
}

export interface Density {
  readonly shortestMs: number;
  readonly perDay: number;
}

export type ParsedCron = { readonly cron: Cron } | { readonly fault: string };

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
/** 29 February comes at earliest every eighth year. The search for anything rarer would take too long. */
const furthestMs = 10 * 366 * dayMs;

/** A list of all 60 minutes is shorter. */
const maxLength = 512;

const read = new Map<string, ParsedCron>();
/** Every firing parses its schedule's expression, and there are few distinct ones. */
const maxCached = 500;

/** Five fields (minute first), six (second first), or a nickname such as `@daily`. Reports what is wrong with others. */
export function parseCron(expression: string, timeZone: string): ParsedCron {
  if (expression.length > maxLength) return { fault: `an expression has at most ${maxLength} characters` };
  if (timeZone.length > maxLength) return { fault: `a time zone's name has at most ${maxLength} characters` };
  const key = `${timeZone}\n${expression}`;
  const known = read.get(key);
  if (known !== undefined) return known;
  const parsed = parse(expression, timeZone);
  if (read.size >= maxCached) read.clear();
  read.set(key, parsed);
  return parsed;
}

function parse(expression: string, timeZone: string): ParsedCron {
  const zone = zoneOf(timeZone);
  if (zone === undefined) return { fault: `unknown time zone ${timeZone}; use an IANA name such as Europe/Zurich` };
  const text = expression.trim().replaceAll(/\s+/g, " ");
  // croner reads a date as a single time, and `?` as the time at which the expression is parsed.
  if (!/^(@\w+|\S+( \S+){4,5})$/.test(text)) {
    return { fault: `"${expression}" needs five fields (minute hour day month weekday), or six with seconds in front` };
  }
  if (text.includes("?")) return { fault: `"${expression}": ? depends on when the expression is parsed; use *` };
  try {
    const pattern = new Pattern(text, { timezone: "UTC", mode: "5-or-6-parts" });
    const cron = cronOf(pattern, zone, expression);
    return cron.next(0) === undefined
      ? { fault: `"${expression}" is never due, or less than once in ten years` }
      : { cron };
  } catch (error) {
    const message = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : String(error);
    return { fault: `"${expression}": ${message}` };
  }
}

function cronOf(pattern: Pattern, zone: Zone, expression: string): Cron {
  const fields = (pattern.getPattern() ?? "").split(" ");
  const repeats = fields.at(-4)!.startsWith("*");
  /** The first match in local time at or after `from`. The pattern has no zone: it treats every local time as UTC. */
  const onWall = (from: number): number | undefined =>
    pattern.nextRun(new Date(Math.ceil(from / secondMs) * secondMs - 1))?.getTime();

  const next = (after: number): number | undefined => {
    // Strictly after, and cron has whole seconds only.
    let at = (Math.floor(after / secondMs) + 1) * secondMs;
    let earliest = Number.NEGATIVE_INFINITY;
    if (!repeats) {
      // After a shift back, the repeated local times were due the first time already. After a shift forward, the
      // instant of the shift is due for the times that it skipped.
      for (const { at: set, from, to } of recentShifts(zone, at)) {
        if (to < from) earliest = Math.max(earliest, set + from);
        const wall = set === at && to > from ? onWall(at + from) : undefined;
        if (wall !== undefined && wall < at + to) return at;
      }
    }
    for (;;) {
      const offset = zone.offsetMs(at);
      const wall = onWall(Math.max(at + offset, earliest));
      if (wall === undefined || wall - offset - after > furthestMs) return undefined;
      const shift = nextShift(zone, at, wall - offset);
      if (shift === undefined) return wall - offset;
      if (!repeats && wall < shift.at + shift.to) return shift.at; // in the gap
      if (!repeats && shift.to < shift.from) earliest = Math.max(earliest, shift.at + shift.from);
      at = shift.at;
    }
  };

  const last = (from: number, until: number): number | undefined => {
    // Search back in growing windows: a yearly expression costs a dozen, an every-second one at most a minute's worth.
    for (let back = 60_000; ; back *= 4) {
      const begin = Math.max(from, until - back) - 1;
      let found: number | undefined;
      for (let at = next(begin); at !== undefined && at <= until; at = next(at)) found = at;
      if (found !== undefined || begin < from) return found;
    }
  };

  let dense: Density | undefined;
  const density = (): Density => {
    dense ??= densityOf(fields);
    return dense;
  };
  return { expression, timeZone: zone.name, next, last, density };
}

/** Uses the time-of-day fields alone, as if every day matched; a gap may span the end of its minute or hour. */
function densityOf(fields: readonly string[]): Density {
  const [second = "0", minute, hour] = fields.length > 5 ? fields : ["0", ...fields];
  const within = [
    { values: valuesOf(`${second} * * * * *`, secondMs, 60), unitMs: secondMs, size: 60 },
    { values: valuesOf(`0 ${minute} * * * *`, minuteMs, 60), unitMs: minuteMs, size: 60 },
    { values: valuesOf(`0 0 ${hour} * * *`, hourMs, 24), unitMs: hourMs, size: 24 },
  ];
  const finest = within.find(({ values }) => values.length > 1);
  const shortestMs = finest === undefined ? dayMs : minGap(finest.values, finest.size) * finest.unitMs;
  return { shortestMs, perDay: within.reduce((product, { values }) => product * values.length, 1) };
}

/** Which of `size` units of a field match. */
function valuesOf(pattern: string, unitMs: number, size: number): number[] {
  const field = new Pattern(pattern, { timezone: "UTC", mode: "6-part" });
  const values: number[] = [];
  for (let at = field.nextRun(new Date(-1)); at !== null && at.getTime() < size * unitMs; at = field.nextRun(at)) {
    values.push(at.getTime() / unitMs);
  }
  return values;
}

function minGap(values: readonly number[], size: number): number {
  return Math.min(...values.map((value, k) => (k === 0 ? value + size - values.at(-1)! : value - values[k - 1]!)));
}
