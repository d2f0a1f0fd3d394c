import type { Sink, SinkNeed } from "../api.ts";
import { formatDuration, plural } from "../format.ts";

/** How the state of a sink reads, and why it needs an operator. */

export const lagText = ({ lagMs }: Pick<Sink, "lagMs">): string => (lagMs === 0 ? "none" : formatDuration(lagMs));

/** Why it is paused, or what its fan-out last reported. */
export function noteText({ paused, lease }: Sink): string {
  if (paused !== undefined) return `paused by ${paused.by}: ${paused.reason}`;
  return lease.paused ? "its lease is paused" : (lease.progressNote ?? "");
}

const texts: Readonly<Record<SinkNeed["problems"][number], (need: SinkNeed) => string>> = {
  paused: ({ note }) => `sends nothing until it is resumed${note === undefined ? "" : `; ${note}`}`,
  blocked: ({ lagMs, note }) => `its receiver accepts no events for ${formatDuration(lagMs)}; ${note ?? "retrying"}`,
  late: ({ lagMs }) => `${formatDuration(lagMs)} late`,
  dead_letters: ({ openLetters }) => plural(openLetters, "open dead letter"),
  retention: ({ keptRuns }) => `pruning keeps ${plural(keptRuns, "ended run")} for it`,
};

export const needText = (need: SinkNeed): string => need.problems.map((problem) => texts[problem](need)).join("; ");

/** Short enough for a badge. */
const labels: Readonly<Partial<Record<SinkNeed["problems"][number], string>>> = {
  dead_letters: "refused",
  retention: "keeps runs",
};

export const needLabel = ({ problems: [first = "late"] }: SinkNeed): string => labels[first] ?? first;

export const needStatus = ({ problems }: SinkNeed): string => (problems[0] === "paused" ? "PAUSED" : "STALLED");

export const stateStatus = ({ state }: Pick<Sink, "state">): string => state.toUpperCase();
