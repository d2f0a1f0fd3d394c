/** "250ms", "30s", "5m", "24h", "7d", "2y" (of 365 days), or a number of milliseconds. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d" | "y"}`;

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  y: 365 * 86_400_000,
};
/** A hundred years. A larger number is a mistake, such as seconds for milliseconds or a date for a duration. */
const maxMs = 100 * 366 * 86_400_000;

/** Milliseconds, or undefined if the text is not a duration. */
export function durationMs(duration: Duration): number | undefined {
  let ms: number | undefined;
  if (typeof duration === "number") ms = duration;
  else if (typeof duration === "string") {
    const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|y)$/.exec(duration);
    if (match !== null) ms = Number(match[1]) * unitMs[match[2]!]!;
  }
  return ms !== undefined && Number.isFinite(ms) && ms >= 0 && ms <= maxMs ? ms : undefined;
}

const spellings: Readonly<Record<string, string>> = {
  ms: "ms msec msecs milli millis millisecond milliseconds",
  s: "s sec secs second seconds",
  m: "m min mins minute minutes",
  h: "h hr hrs hour hours",
  d: "d day days",
  y: "y yr yrs year years",
};

/** The duration that a text such as "10 mins" probably means. */
export function nearestDuration(text: string): Duration | undefined {
  const match = /^\s*(\d{1,12}(?:\.\d{1,9})?)\s*([a-z]{0,12})\s*$/i.exec(text.slice(0, 64));
  if (match === null) return undefined;
  const word = match[2]!.toLowerCase();
  if (word === "w" || word === "week" || word === "weeks") return `${Number(match[1]) * 7}d`;
  const unit = word === "" ? "ms" : Object.keys(spellings).find((key) => spellings[key]!.split(" ").includes(word));
  return unit === undefined ? undefined : `${Number(match[1])}${unit as "ms"}`;
}
