import { useQuery } from "@tanstack/react-query";
import { call, type Wire } from "../api.ts";
import { unwrap } from "../format.ts";

/** A process that lately said what it is at. */
export interface Process {
  readonly owner: string;
  readonly label: string;
  readonly agoMs: number;
  readonly startedAt: number | undefined;
  readonly driving: number;
  readonly reactors: readonly { readonly name: string; readonly perMinute: number; readonly errorsPerMinute: number }[];
  readonly singletons: readonly { readonly name: string; readonly state: string }[];
}

const object = (given: unknown): Readonly<Record<string, unknown>> =>
  typeof given === "object" && given !== null ? (given as Readonly<Record<string, unknown>>) : {};
const count = (given: unknown): number => (typeof given === "number" ? given : 0);

/** What it says is its own: another version, or another program, may say something else. */
function processOf({ owner, label, agoMs, body }: Wire<"processes.list">["processes"][number]): Process {
  const { startedAt, driving, reactors, singletons } = object(unwrap(body));
  return {
    ...{ owner, label, agoMs, driving: count(driving) },
    startedAt: typeof startedAt === "number" ? startedAt : undefined,
    reactors: Object.entries(object(reactors)).map(([name, tally]) => ({
      name,
      perMinute: count(object(tally).perMinute),
      errorsPerMinute: count(object(tally).errorsPerMinute),
    })),
    singletons: (Array.isArray(singletons) ? singletons : []).map((one) => ({
      name: String(object(one).name),
      state: String(object(one).state),
    })),
  };
}

/** Nothing in the feed tells of them: they are looked for. */
export function useProcesses(): readonly Process[] {
  const processes = useQuery({
    queryKey: ["processes"],
    queryFn: async () => (await call("processes.list")).processes.map(processOf),
    refetchInterval: 5_000,
  });
  return processes.data ?? [];
}

/** Those who would take the singleton if its holder were gone. */
export const standbysOf = (processes: readonly Process[], name: string | null, holder: string | null): string[] =>
  namesOf(
    processes.filter(
      ({ owner, singletons }) =>
        owner !== holder && singletons.some((one) => one.name === name && one.state !== "stopped"),
    ),
  );

/** Labels; one that several have says how many. */
export function namesOf(processes: readonly { readonly label: string }[]): string[] {
  const counts = new Map<string, number>();
  for (const { label } of processes) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts].map(([label, many]) => (many === 1 ? label : `${label} ×${many}`));
}
