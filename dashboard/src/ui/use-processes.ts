import { useQuery } from "@tanstack/react-query";
import type { Wire } from "../api.ts";
import { unwrap } from "../format.ts";
import { processes } from "../queries.ts";

/** A process that reported within the last minute. */
export interface Process {
  readonly owner: string;
  readonly label: string;
  readonly agoMs: number;
  readonly startedAt: number | undefined;
  readonly driving: number;
  readonly reactors: readonly { readonly name: string; readonly perMinute: number; readonly errorsPerMinute: number }[];
  readonly singletons: readonly { readonly name: string; readonly state: string }[];
}

const object = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
const count = (value: unknown): number => (typeof value === "number" ? value : 0);

/** The body is free-form: another version of Tape, or another program, may report other fields. */
function processOf({ owner, label, agoMs, body }: Wire<"processes.list">["processes"][number]): Process {
  const { startedAt, driving, reactors, singletons } = object(unwrap(body));
  return {
    ...{ owner, label, agoMs, driving: count(driving) },
    startedAt: typeof startedAt === "number" ? startedAt : undefined,
    reactors: Object.entries(object(reactors)).map(([name, stats]) => ({
      name,
      perMinute: count(object(stats).perMinute),
      errorsPerMinute: count(object(stats).errorsPerMinute),
    })),
    singletons: (Array.isArray(singletons) ? singletons : []).map((singleton) => ({
      name: String(object(singleton).name),
      state: String(object(singleton).state),
    })),
  };
}

export function useProcesses(): readonly Process[] {
  return useQuery(processes()).data?.processes.map(processOf) ?? [];
}

/** Labels of the processes that would acquire the singleton if its holder crashed. */
export const standbysOf = (all: readonly Process[], name: string | null, holder: string | null): string[] =>
  labelsOf(
    all.filter(
      ({ owner, singletons }) =>
        owner !== holder && singletons.some((singleton) => singleton.name === name && singleton.state !== "stopped"),
    ),
  );

/** "worker-a, worker-b ×2": each label once, with a count if several processes share it. */
export function labelsOf(all: readonly { readonly label: string }[]): string[] {
  const counts = new Map<string, number>();
  for (const { label } of all) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts].map(([label, total]) => (total === 1 ? label : `${label} ×${total}`));
}
