import { useQuery } from "@tanstack/react-query";
import type { Wire } from "../api.ts";
import { unwrap } from "../format.ts";
import type { JsonSchema } from "../gate/json-schema.ts";
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
  readonly workflows: readonly string[];
  /** JSON Schemas of the values that its gates accept, by name. */
  readonly gates: Readonly<Record<string, unknown>>;
}

const object = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
const count = (value: unknown): number => (typeof value === "number" ? value : 0);

/** The body is free-form: another version of Tape, or another program, may report other fields. */
function processOf({ owner, label, agoMs, body }: Wire<"processes.list">["processes"][number]): Process {
  const { startedAt, driving, reactors, singletons, gates, workflows } = object(unwrap(body));
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
    workflows: (Array.isArray(workflows) ? workflows : []).map(String),
    gates: object(gates),
  };
}

export function useProcesses(): readonly Process[] {
  return useQuery(processes()).data?.processes.map(processOf) ?? [];
}

/** Processes report every 15 s: after this long two reports are missing. Such a process counts no more. */
const silentMs = 35_000;
export const isSilent = ({ agoMs }: Pick<Process, "agoMs">): boolean => agoMs > silentMs;

/** What a gate accepts, as the process says that reported last. */
export function useGateSchema(name: string): JsonSchema | undefined {
  const reporting = useProcesses().filter(({ gates }) => Object.hasOwn(gates, name));
  const newest = reporting.sort((a, b) => a.agoMs - b.agoMs)[0];
  return newest === undefined ? undefined : (object(newest.gates[name]) as JsonSchema);
}

/** Labels of the processes that would acquire the singleton if its holder crashed. */
export const standbysOf = (all: readonly Process[], name: string | null, holder: string | null): string[] =>
  labelsOf(
    all.filter(
      ({ owner, agoMs, singletons }) =>
        owner !== holder &&
        !isSilent({ agoMs }) &&
        singletons.some((singleton) => singleton.name === name && singleton.state !== "stopped"),
    ),
  );

/** "worker-a, worker-b ×2": each label once, with a count if several processes share it. */
export function labelsOf(all: readonly { readonly label: string }[]): string[] {
  const counts = new Map<string, number>();
  for (const { label } of all) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts].map(([label, total]) => (total === 1 ? label : `${label} ×${total}`));
}
