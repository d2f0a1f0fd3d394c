import type { CallOptions } from "./api.ts";
import { serverNow } from "./ui/use-now.ts";

/** Filters of the run list, as they stand in the address. */
export interface RunSearch {
  readonly status?: string | undefined;
  readonly workflow?: string | undefined;
  readonly label?: string | undefined;
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

/** The filters as the query of `runs.list`. */
export function runQuery(search: RunSearch): NonNullable<CallOptions<"runs.list">["query"]> {
  const { status, workflow, label, prefix, since, until, inDoubt } = search;
  return { status, workflow, label, prefix, inDoubt, startedSince: timeOf(since), startedUntil: timeOf(until) };
}

export const isFiltered = (search: RunSearch): boolean => Object.values(search).some((filter) => filter !== undefined);
