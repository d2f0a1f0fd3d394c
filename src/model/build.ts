import { TapeError } from "./errors.ts";

/**
 * A run of a pinned workflow belongs to the build that drove it first: only processes of that build execute its code.
 * The text in `leases.next_reactor` routes it, so that the index of due work finds it, and nothing is filtered.
 */

/** A build is part of a reactor's name, a URL and a Kubernetes label. */
export const buildPattern = /^[A-Za-z0-9][A-Za-z0-9._:+-]{0,127}$/;
export const buildShape = "1 to 128 letters, digits and . _ : + -, the first a letter or digit";

export const isBuild = (build: unknown): build is string => typeof build === "string" && buildPattern.test(build);

export function assertBuild(subject: string, build: unknown): asserts build is string {
  if (isBuild(build)) return;
  const given = typeof build === "string" ? JSON.stringify(build.slice(0, 200)) : String(build);
  throw new TapeError("TAPE_BAD_INPUT", `${subject}: a build has ${buildShape}, not ${given}`, { field: "build" });
}

const driving = "recovery";
const pinnedPrefix = `${driving}@`;

/** The reactor that a run waits for, by its pin. The statements that write `next_reactor` restate this. */
export const reactorOf = (nextReactor: string | null, pin: string | null): string | null =>
  nextReactor === driving && pin !== null ? pinnedPrefix + pin : nextReactor;

/** The reactor of a process with this build that finds such work; undefined: it is work of another build. */
export function ownReactor(nextReactor: string, build: string | undefined): string | undefined {
  if (!nextReactor.startsWith(pinnedPrefix)) return nextReactor;
  return build !== undefined && nextReactor === pinnedPrefix + build ? driving : undefined;
}

/** Without its build: what metrics and lists count together. */
export const plainReactor = (nextReactor: string): string =>
  nextReactor.startsWith(pinnedPrefix) ? driving : nextReactor;

/** A name that only the store may write: a holder hands a run to `recovery`, and its pin decides which. */
export const isRouted = (nextReactor: string): boolean => nextReactor.startsWith(pinnedPrefix);

/** The build of a process, for a find. */
export interface BuildClaim {
  /** The name of the build. */
  readonly build: string;
  /** Workflows whose runs are pinned to the build with their first term here. */
  readonly pinned: readonly string[];
  /** Those of them whose new runs are left to another build, which is current. A hint: it delays, and protects nothing. */
  readonly leaves?: readonly string[];
}

/** Who executes code: the rule for every path that hands out a run. */
export const mayDrive = (pin: string | null, build: string | undefined): boolean => pin === null || pin === build;

/** Whether a process leaves a run without a pin to the build that is current. */
export const leavesRun = (pin: string | null, workflow: string, claim: BuildClaim | undefined): boolean =>
  pin === null && claim?.leaves?.includes(workflow) === true;

/** The build that the first term here gives to the run; undefined: it has one, or its workflow is not pinned. */
export const pinOf = (pin: string | null, workflow: string, claim: BuildClaim | undefined): string | undefined =>
  pin === null && claim?.pinned.includes(workflow) === true ? claim.build : undefined;

/** A build as the store lists it. */
export interface BuildRow {
  /** The name of the build. */
  readonly build: string;
  /** Its pinned workflows, as its processes have declared them. */
  readonly workflows: readonly string[];
  /** Whether new runs are pinned to it. */
  readonly current: boolean;
}

/** The pinned workflows whose new runs belong to another build: one that is current and declares them, too. */
export function workflowsOfOthers(build: string, pinned: readonly string[], builds: readonly BuildRow[]): string[] {
  const others = builds.filter((row) => row.current && row.build !== build);
  const own = builds.some((row) => row.build === build && row.current);
  return own ? [] : pinned.filter((workflow) => others.some(({ workflows }) => workflows.includes(workflow)));
}

/** The builds that are no longer current once this one is: those that share a pinned workflow with it. */
export function supersededBy(build: string, builds: readonly BuildRow[]): string[] {
  const own = new Set(builds.find((row) => row.build === build)?.workflows ?? []);
  const shares = ({ workflows }: BuildRow): boolean => workflows.some((workflow) => own.has(workflow));
  return builds.filter((row) => row.build !== build && row.current && shares(row)).map((row) => row.build);
}
