import type { RunSearch } from "./router.tsx";
import { serverNow } from "./ui/use-now.ts";

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** "24h": so long before now; else a moment of the person's own clock. Anything else: no bound. */
function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, count, unit] = /^(\d{1,4})([mhd])$/.exec(text) ?? [];
  if (unit !== undefined) return Math.floor(serverNow() - Number(count) * units[unit]!);
  const time = new Date(text).getTime();
  return Number.isNaN(time) ? undefined : time;
}

/** What the address asks for, as the call wants it. */
export function runQuery({ status, workflow, label, prefix, since, until, doubt }: RunSearch) {
  return { status, workflow, label, prefix, doubt, startedSince: timeOf(since), startedUntil: timeOf(until) };
}

export const isFiltered = (search: RunSearch): boolean => Object.values(search).some((given) => given !== undefined);
