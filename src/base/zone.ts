/** The local time of a time zone, and when it shifts forward or back. */
export interface Zone {
  readonly name: string;
  /** Local time minus UTC at this instant, in milliseconds. */
  offsetMs(at: number): number;
  /** The same at the start of a UTC day since 1970; cached, because a search reads many days. */
  offsetOfDay(day: number): number;
}

/** One change of a zone's offset: `from` before `at`, `to` from `at` on. */
export interface Shift {
  readonly at: number;
  readonly from: number;
  readonly to: number;
}

const dayMs = 86_400_000;
/** Cached days of one zone: 27 years. */
const maxDays = 10_000;
const zones = new Map<string, Zone>();

/** undefined if no time zone has this name. Names are from the IANA database, as in `Europe/Zurich`. */
export function zoneOf(name: string): Zone | undefined {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      calendar: "gregory",
      numberingSystem: "latn",
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  } catch {
    return undefined;
  }
  // One entry per zone, however its name is spelt, so that the number of zones bounds the cached days.
  const zone = zones.get(format.resolvedOptions().timeZone) ?? remembering(format);
  zones.set(format.resolvedOptions().timeZone, zone);
  return { ...zone, name };
}

function remembering(format: Intl.DateTimeFormat): Zone {
  const days = new Map<number, number>();
  const offsetMs = (at: number): number => {
    const part: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(at)) part[type] = Number(value);
    const { year, month, day, hour, minute, second } = part as Record<"year" | string, number>;
    const shown = Date.UTC(year!, month! - 1, day!, hour!, minute!, second!);
    return shown - Math.floor(at / 1_000) * 1_000;
  };
  const offsetOfDay = (day: number): number => {
    const known = days.get(day);
    if (known !== undefined) return known;
    const offset = offsetMs(day * dayMs);
    if (days.size >= maxDays) days.clear();
    days.set(day, offset);
    return offset;
  };
  return { name: format.resolvedOptions().timeZone, offsetMs, offsetOfDay };
}

/**
 * The first shift after `after` and not later than `until`. Checks the start of each day, which misses nothing: no zone
 * has ever shifted forth and back within one day.
 */
export function nextShift(zone: Zone, after: number, until: number): Shift | undefined {
  let low = after;
  const from = zone.offsetMs(low);
  while (low < until) {
    const day = Math.floor(low / dayMs) + 1;
    let high = Math.min(until, day * dayMs);
    const to = high === until ? zone.offsetMs(high) : zone.offsetOfDay(day);
    if (to === from) {
      low = high;
      continue;
    }
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (zone.offsetMs(middle) === from) low = middle;
      else high = middle;
    }
    return { at: high, from, to: zone.offsetMs(high) };
  }
  return undefined;
}

/** The shifts of the day before `at`, latest last: their effect on local time may not be over yet. */
export function recentShifts(zone: Zone, at: number): Shift[] {
  const shifts: Shift[] = [];
  // A zone that crosses the date line moves by a whole day.
  for (let from = at - dayMs - 1; ; ) {
    const shift = nextShift(zone, from, at);
    if (shift === undefined) return shifts;
    shifts.push(shift);
    from = shift.at;
  }
}
