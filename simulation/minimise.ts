import { systemClock } from "../src/base/clock.ts";
import type { Plan } from "./plan.ts";
import { describeFault, rightClock } from "./plan-faults.ts";
import { noNeighbours } from "./plan-neighbours.ts";

/** Whoever waits for a failure to be explained wants it soon, not perfect. */
const boundMs = 20_000;

/** The plan without one of its parts, for each part that it can do without. Those that matter least come first. */
function* smaller(plan: Plan): Generator<Plan> {
  const { values, schedules, singleton, rewind, deeds, signals, faults, runs, remote, clocks } = plan;
  if (values.length > 0) yield { ...plan, values: [] };
  if (schedules.length > 0) yield { ...plan, schedules: [] };
  if (plan.strangers.length > 0) yield { ...plan, strangers: [] };
  if (plan.neighbours !== noNeighbours) yield { ...plan, neighbours: noNeighbours };
  if (plan.unbegun !== undefined) yield { ...plan, unbegun: undefined };
  if (plan.wallStep !== undefined) yield { ...plan, wallStep: undefined };
  if (singleton !== undefined) yield { ...plan, singleton: undefined };
  if (rewind !== undefined) yield { ...plan, rewind: undefined };
  if (remote.includes(true)) yield { ...plan, remote: remote.map(() => false) };
  if (clocks.some((clock) => clock !== rightClock)) yield { ...plan, clocks: clocks.map(() => rightClock) };
  if (plan.deafness > 0) yield { ...plan, deafness: 0 };
  if (plan.travelMs > 0) yield { ...plan, travelMs: 0 };
  for (const run of runs) {
    if (runs.length === 1) break;
    const others = { runs: runs.filter((one) => one !== run), signals: signals.filter((one) => one.run !== run.id) };
    yield { ...plan, ...others, deeds: deeds.filter((one) => one.run !== run.id) };
  }
  for (const deed of deeds) yield { ...plan, deeds: deeds.filter((one) => one !== deed) };
  for (const signal of signals) yield { ...plan, signals: signals.filter((one) => one !== signal) };
  for (const signal of plan.guarded) yield { ...plan, guarded: plan.guarded.filter((one) => one !== signal) };
  const { deeds: theirs, walks } = plan.neighbours;
  for (const deed of theirs) {
    yield { ...plan, neighbours: { walks, deeds: theirs.filter((one) => one !== deed) } };
  }
  for (const walk of walks)
    yield { ...plan, neighbours: { deeds: theirs, walks: walks.filter((one) => one !== walk) } };
  for (const fault of faults) yield { ...plan, faults: faults.filter((one) => one !== fault) };
  for (const run of runs) {
    const { ops } = run.program;
    for (let k = 0; k < ops.length && ops.length > 1; k++) {
      const program = { ...run.program, ops: ops.filter((_, at) => at !== k) };
      yield { ...plan, runs: runs.map((one) => (one === run ? { ...run, program } : one)) };
    }
    if (run.cancelAtMs !== undefined) {
      yield { ...plan, runs: runs.map((one) => (one === run ? { ...run, cancelAtMs: undefined } : one)) };
    }
  }
}

/** The smallest plan found in time that still breaks: taking one part away at a time for as long as that goes well. */
export async function minimise(plan: Plan, breaks: (plan: Plan) => Promise<boolean>): Promise<Plan> {
  const until = systemClock.mono() + boundMs;
  let least = plan;
  for (let shrunk = true; shrunk; ) {
    shrunk = false;
    for (const candidate of smaller(least)) {
      if (systemClock.mono() > until) return least;
      if (!(await breaks(candidate))) continue;
      least = candidate;
      shrunk = true;
      break;
    }
  }
  return least;
}

/** A plan in words, for whoever has to find out why it failed. */
export function describePlan(plan: Plan): string[] {
  const { replicas, remote, clocks, ttlMs, travelMs, deafness, rewind, singleton } = plan;
  const connected = remote.flatMap((one, k) => (one ? [k] : []));
  const wrong = clocks.flatMap((clock, k) => (clock === rightClock ? [] : [`${k} ${JSON.stringify(clock)}`]));
  const lines = [
    `${replicas} replicas, TTL ${ttlMs}, travel ${travelMs}, deafness ${deafness}`,
    `${plan.heals ? "healed" : "cut off"} at ${plan.healAtMs}, ${plan.person ? "a person" : "nobody"} looks after doubts`,
    connected.length > 0 ? `over the wire: ${connected.join(", ")}` : "",
    wrong.length > 0 ? `wrong clocks: ${wrong.join("; ")}` : "",
    rewind === undefined ? "" : `at ${rewind.atMs} back to ${rewind.snapshotAtMs}, away for ${rewind.awayMs} ms`,
    singleton === undefined ? "" : `a singleton every ${singleton.everyMs} ms`,
    ...plan.schedules.map((one) => `schedule ${JSON.stringify(one)}`),
    ...(plan.values.length > 0 ? [`${plan.values.length} deeds on values`] : []),
    ...plan.runs.map((run) => `run ${JSON.stringify(run)}`),
    ...plan.signals.map(({ run, gate, atMs, key }) => `at ${atMs} signal ${gate} to ${run}, ${key ?? "no key"}`),
    ...plan.guarded.map((one) => `at ${one.atMs} signal guarded to ${one.run} by ${one.by}: ${one.value}`),
    ...plan.neighbours.deeds.map(({ atMs, what, n }) => `at ${atMs} a neighbour: ${what} (${n})`),
    ...plan.neighbours.walks.map((walk) => `at ${walk.atMs} a walk ${JSON.stringify(walk)}`),
    ...plan.strangers.map(({ atMs, what }) => `at ${atMs} a stranger: ${what}`),
    plan.unbegun === undefined ? "" : `unbegun ${JSON.stringify(plan.unbegun)}`,
    plan.wallStep === undefined
      ? ""
      : `at ${plan.wallStep.atMs} the store's wall clock is set by ${plan.wallStep.byMs}`,
    ...plan.deeds.map(({ atMs, what, run }) => `at ${atMs} an operator: ${what} (${run})`),
    ...plan.faults.map(describeFault),
  ];
  return lines.filter((line) => line !== "");
}
