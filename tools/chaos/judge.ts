import type { EffectRow } from "../../src/model/rows.ts";
import type { RunView } from "../../src/store/contract.ts";
import type { Deed } from "./world.ts";

/** A run as it was asked for. */
export interface Started {
  readonly id: string;
  readonly flow: string;
  readonly ms: number;
  /** What was signalled to its gate. */
  readonly said?: string;
}

export interface Evidence {
  readonly started: readonly Started[];
  /** Every run of the store, children included. */
  readonly runs: readonly RunView[];
  readonly effects: readonly EffectRow[];
  /** The world's own ledger, in its order. */
  readonly deeds: readonly Deed[];
}

/** What each flow does in the world, in order; `un…` are not listed: they follow from the end of the run. */
const scripts: Readonly<Record<string, readonly string[]>> = {
  acts: ["pay 2", "wire 3", "mail 4", "post 5"],
  saga: ["book 1", "reserve 2", "rent 3", "book 4"],
  nap: ["mail 1", "mail 2"],
  late: ["mail 1", "mail 2"],
  asked: ["mail 1"],
  again: ["mail 1", "mail 2"],
  family: [],
  broken: [],
};
const childScript = ["book 1", "rent 2"];
const parents = new Set(["family", "broken"]);
const failing = new Set(["saga", "broken"]);
/** Both clocks are this machine's, but one of them may be rounded down. */
const roundingMs = 2;

/** Every rule that is broken, with its evidence. */
export function judge(evidence: Evidence): string[] {
  const { started, deeds } = evidence;
  const broken: string[] = [...settled(evidence), ...twice(deeds), ...believed(evidence)];
  const byRun = Map.groupBy(deeds, ({ run }) => run);
  for (const run of started) {
    const undone = failing.has(run.flow);
    broken.push(...played(run.id, scripts[run.flow]!, undone, byRun.get(run.id) ?? []));
    for (const k of parents.has(run.flow) ? [1, 2] : []) {
      const child = `${run.id}/${k}`;
      broken.push(...played(child, childScript, undone, byRun.get(child) ?? []));
    }
    if (run.flow === "nap" || run.flow === "late") broken.push(...early(run, byRun.get(run.id) ?? []));
  }
  return broken;
}

/** All runs have ended, and as they should. */
function settled({ started, runs }: Evidence): string[] {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const ids = new Set(started.map(({ id }) => id));
  const orphans = runs.filter(({ id, endedAt }) => !ids.has(id) && endedAt === null);
  return [
    ...orphans.map((run) => `child ${run.id} is ${run.status}, not ended`),
    ...started.flatMap(({ id, flow, said }) => {
      const run = byId.get(id);
      if (run === undefined) return [`run ${id} was started and is not there`];
      const wanted = failing.has(flow) ? "COMPENSATED" : "COMPLETED";
      if (run.status !== wanted) return [`run ${id} is ${run.status}, not ${wanted}: ${String(run.outcome)}`];
      const answer = flow === "late" ? "timeout" : said;
      if (answer === undefined || run.outcome === answer) return [];
      return [`run ${id} got ${String(run.outcome)} at its gate, not ${answer}`];
    }),
  ];
}

const nameOf = ({ name, n }: Deed): string => `${name} ${n}`;
const lineOf = (deed: Deed): string => `${nameOf(deed)} (${deed.key}, token ${deed.token}, by ${deed.worker})`;

/** No act and no inverse is done twice: neither under one key nor, with a fresh key, for one purpose. */
function twice(deeds: readonly Deed[]): string[] {
  const several = (by: (deed: Deed) => string): string[] =>
    [...Map.groupBy(deeds, by)]
      .filter(([, same]) => same.length > 1)
      .map(([what, same]) => `done ${same.length} times: ${what}: ${same.map(lineOf).join(", ")}`);
  return several((deed) => `${deed.run} ${nameOf(deed)}`);
}

/** Everything was done, and what had to be undone was undone, newest first; a healthy run's deeds stand. */
function played(run: string, script: readonly string[], undone: boolean, deeds: readonly Deed[]): string[] {
  const done = deeds.filter(({ name }) => !name.startsWith("un")).map(nameOf);
  const undoings = deeds.filter(({ name }) => name.startsWith("un"));
  const broken: string[] = [];
  if (done.toSorted().join() !== script.toSorted().join()) {
    broken.push(`run ${run} did ${done.join(", ") || "nothing"} in the world, not ${script.join(", ")}`);
  }
  const wanted = undone ? script.toReversed().map((line) => `un${line}`) : [];
  if (undoings.map(nameOf).join() !== wanted.join()) {
    const order = wanted.length > 0 ? `${wanted.join(", ")}, newest first` : "nothing";
    broken.push(`run ${run} undid ${undoings.map(lineOf).join(", ") || "nothing"}, not ${order}`);
  }
  const first = deeds.findIndex(({ name }) => name.startsWith("un"));
  if (first >= 0 && deeds.slice(first).some(({ name }) => !name.startsWith("un"))) {
    broken.push(`run ${run} did something after it had begun to undo: ${deeds.map(nameOf).join(", ")}`);
  }
  return broken;
}

/** Between the deeds before and after a sleep or a time-out lies at least its length. */
function early({ id, ms }: Started, deeds: readonly Deed[]): string[] {
  const before = deeds.find(({ n }) => n === 1);
  const after = deeds.find(({ n }) => n === 2);
  if (before === undefined || after === undefined) return []; // told already
  const slept = after.at - before.at;
  return slept >= ms - roundingMs ? [] : [`the timer of run ${id} fired after ${slept} ms, not ${ms}: too early`];
}

/** What the journal believes is what the world did. */
function believed({ effects, deeds }: Evidence): string[] {
  const keys = new Set(deeds.map(({ key }) => key));
  const happened = new Set(["CONFIRMED", "COMPENSATED"]);
  const not = new Set(["FAILED", "WITHDRAWN", "DISCHARGED"]);
  return effects.flatMap((effect) => {
    const { name, key, status, semantics, role } = effect;
    if (semantics === "read" && role === "act") return [];
    const what = `${role} ${name} ${key}`;
    if (happened.has(status)) return keys.has(key) ? [] : [`${what} is ${status}, and the world knows nothing of it`];
    if (not.has(status)) return keys.has(key) ? [`${what} is ${status}, and the world has done it`] : [];
    return [`${what} is still ${status}`];
  });
}
