import { problemsOf, type SinkProblem } from "../../model/sink-state.ts";
import type { SinkRow, Store } from "../../store/contract/store.ts";
import { readList } from "../../store/read-all.ts";
import { lasting, plural } from "../output.ts";
import { type Finding, finding } from "./finding.ts";

const maxNamed = 5;

/** Checks of sinks; none if the tenant has no sink. */
export async function sinkFindings({ read }: Store, tenant: string): Promise<Finding[]> {
  const sinks = await readList(
    (above) => read.sinks(tenant, { above }),
    ({ sink }) => sink,
  );
  if (sinks.length === 0) return [];
  const listed = (problem: SinkProblem, text: (row: SinkRow) => string): string[] =>
    sinks.filter((row) => problemsOf(row).includes(problem)).map(text);
  const named = (found: readonly string[]): string =>
    [...found.slice(0, maxNamed), ...(found.length > maxNamed ? [`and ${found.length - maxNamed} more`] : [])].join(
      "; ",
    );
  const idle = [
    ...listed("paused", ({ sink, paused }) => `${sink} is paused${paused ? ` by ${paused.by}: ${paused.reason}` : ""}`),
    ...listed("blocked", ({ sink, lagMs, lease }) => `${sink} is ${lasting(lagMs)} late, ${lease.progressNote}`),
    ...listed("late", ({ sink, lagMs, state }) =>
      state === "off"
        ? `${sink} is ${lasting(lagMs)} late, and no process sends its events`
        : `${sink} is ${lasting(lagMs)} late`,
    ),
  ];
  return [
    finding(
      "sinks",
      "every sink receives events in time",
      "warn",
      named(idle),
      'Check its receiver: durable-tape sink explain <sink>. Start its fan-out (tape-reactors, or durable-tape fanout); resume a paused one: durable-tape sink resume <sink> --reason "…".',
    ),
    finding(
      "dead letters",
      "no sink has open dead letters",
      "warn",
      named(listed("dead_letters", ({ sink, openLetters }) => `${sink}: ${plural(openLetters, "open dead letter")}`)),
      'Read them: durable-tape sink dead-letters <sink>. Then durable-tape sink replay <sink> --reason "…", or sink discard.',
    ),
    finding(
      "retention",
      "no sink keeps ended runs from pruning",
      "warn",
      named(
        listed(
          "retention",
          ({ sink, keptRuns }) => `${sink} has not passed ${plural(keptRuns, "run")} that ended over an hour ago`,
        ),
      ),
      'Pruning keeps them for it. If the sink is no longer used: durable-tape sink forget <sink> --reason "…".',
    ),
  ];
}
