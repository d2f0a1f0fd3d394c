import type { CallOptions } from "./api.ts";
import { serverNow } from "./ui/use-now.ts";

/** Filters of the run list, as they stand in the address. */
export interface RunSearch {
  readonly status?: string | undefined;
  readonly workflow?: string | undefined;
  /** `key:value,…`, as `runs.list` takes them: see `labelPairs`. */
  readonly labels?: string | undefined;
  readonly prefix?: string | undefined;
  /** When the run started: "24h" before now, or a time as "2026-11-16T06:00". */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly inDoubt?: true | undefined;
}

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** "24h" is relative to the server's clock; any other time is local to the browser. An invalid one is no bound. */
function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, count, unit] = /^(\d{1,4})([mhd])$/.exec(text) ?? [];
  if (unit !== undefined) return Math.floor(serverNow() - Number(count) * units[unit]!);
  const time = new Date(text).getTime();
  return Number.isNaN(time) ? undefined : time;
}

const escaped = (part: string, letters: RegExp): string => part.replace(letters, encodeURIComponent);
/** `key:value`; % as %25, a comma as %2C, and in a key a colon as %3A. */
export const labelText = (key: string, value: string): string => `${escaped(key, /[%:,]/g)}:${escaped(value, /[%,]/g)}`;

const unescaped = (part: string): string => part.replace(/%(25|3A|2C)/g, decodeURIComponent);
/** The pairs of a text such as `customer:acme, stage:paid`, each as it stands in it and as it reads. */
export function labelPairs(labels: string | undefined): { readonly text: string; readonly shown: string }[] {
  const texts = new Set((labels ?? "").split(",").map((text) => text.trim()));
  return [...texts]
    .filter((text) => text.indexOf(":") > 0)
    .map((text) => {
      const colon = text.indexOf(":");
      return { text, shown: `${unescaped(text.slice(0, colon))}:${unescaped(text.slice(colon + 1))}` };
    });
}

const joined = (texts: readonly string[]): string | undefined => (texts.length === 0 ? undefined : texts.join(","));
/** The pairs that a text has; undefined if it has none. */
export const cleanLabels = (labels: string | undefined): string | undefined =>
  joined(labelPairs(labels).map(({ text }) => text));
/** The filter with one more pair, or without it. */
export const withLabel = (labels: string | undefined, text: string): string | undefined =>
  cleanLabels(`${labels ?? ""},${text}`);
export const withoutLabel = (labels: string | undefined, text: string): string | undefined =>
  joined(labelPairs(labels).flatMap((pair) => (pair.text === text ? [] : [pair.text])));

/** The one label of an address of an earlier version, whose value is not escaped. */
export function labelsOfOlder(label: string | undefined): string | undefined {
  const colon = label?.indexOf(":") ?? -1;
  return label === undefined || colon < 1
    ? undefined
    : labelText(unescaped(label.slice(0, colon)), label.slice(colon + 1));
}

/** The filters as the query of `runs.list`. */
export function runQuery(search: RunSearch): NonNullable<CallOptions<"runs.list">["query"]> {
  const { status, workflow, labels, prefix, since, until, inDoubt } = search;
  return { status, workflow, labels, prefix, inDoubt, startedSince: timeOf(since), startedUntil: timeOf(until) };
}

export const isFiltered = (search: RunSearch): boolean => Object.values(search).some((filter) => filter !== undefined);
