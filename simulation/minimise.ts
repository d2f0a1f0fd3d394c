import { systemClock } from "../src/base/clock.ts";
import type { Plan } from "./plan.ts";
import { describeFault, rightClock } from "./plan-faults.ts";
import { noNeighbours } from "./plan-neighbours.ts";
import { usesObjects, withoutObjects } from "./plan-objects.ts";
import { noQueues } from "./plan-queues.ts";

/** An explanation should come soon; it need not be minimal. */
const boundMs = 20_000;

/** The plan without one of its parts, for each optional part. Least relevant parts come first. */
function* smaller(plan: Plan): Generator<Plan> {
  const { values, schedules, singleton, rewind, actions, signals, faults, runs, remote, clocks } = plan;
  if (values.length > 0) yield { ...plan, values: [] };
  if (schedules.length > 0) yield { ...plan, schedules: [] };
  if (plan.strangers.length > 0) yield { ...plan, strangers: [] };
  if (plan.neighbours !== noNeighbours) yield { ...plan, neighbours: noNeighbours };
  if (plan.unstarted !== undefined) yield { ...plan, unstarted: undefined };
  if (plan.talk !== undefined) yield { ...plan, talk: undefined };
  if (plan.serverless !== undefined) yield { ...plan, serverless: undefined };
  if (plan.wallStep !== undefined) yield { ...plan, wallStep: undefined };
  if (plan.queues.queues.length > 0) yield { ...plan, queues: noQueues };
  const { runs: queued, changes, pauses, takeovers } = plan.queues;
  if (changes.length + pauses.length > 0) yield { ...plan, queues: { ...plan.queues, changes: [], pauses: [] } };
  for (const one of takeovers) {
    yield { ...plan, queues: { ...plan.queues, takeovers: takeovers.filter((other) => other !== one) } };
  }
  for (const run of queued) yield { ...plan, queues: { ...plan.queues, runs: queued.filter((one) => one !== run) } };
  if (plan.sink !== undefined) yield { ...plan, sink: undefined };
  if (plan.retention !== undefined) yield { ...plan, retention: undefined };
  for (const fault of plan.retention?.faults ?? []) {
    const left = plan.retention!.faults.filter((one) => one !== fault);
    yield { ...plan, retention: { ...plan.retention!, faults: left } };
  }
  if (plan.builds !== undefined) yield { ...plan, builds: undefined };
  const { shards } = plan;
  if (shards !== undefined) yield { ...plan, shards: undefined };
  for (const change of shards?.changes ?? []) {
    yield { ...plan, shards: { ...shards!, changes: shards!.changes.filter((one) => one !== change) } };
  }
  if (usesObjects(plan)) yield withoutObjects(plan);
  const { calls, reads } = plan.objects;
  if (reads.length > 0) yield { ...plan, objects: { calls, reads: [] } };
  for (const call of calls) {
    if (calls.length > 1) yield { ...plan, objects: { calls: calls.filter((one) => one !== call), reads } };
  }
  if (singleton !== undefined) yield { ...plan, singleton: undefined };
  if (rewind !== undefined) yield { ...plan, rewind: undefined };
  if (remote.includes(true)) yield { ...plan, remote: remote.map(() => false) };
  if (clocks.some((clock) => clock !== rightClock)) yield { ...plan, clocks: clocks.map(() => rightClock) };
  if (plan.hintLoss > 0) yield { ...plan, hintLoss: 0 };
  if (plan.travelMs > 0) yield { ...plan, travelMs: 0 };
  for (const run of runs) {
    if (runs.length === 1) break;
    const others = { runs: runs.filter((one) => one !== run), signals: signals.filter((one) => one.run !== run.id) };
    yield { ...plan, ...others, actions: actions.filter((one) => one.run !== run.id) };
  }
  for (const action of actions) yield { ...plan, actions: actions.filter((one) => one !== action) };
  for (const signal of signals) yield { ...plan, signals: signals.filter((one) => one !== signal) };
  for (const start of plan.callers) yield { ...plan, callers: plan.callers.filter((one) => one !== start) };
  for (const signal of plan.guarded) yield { ...plan, guarded: plan.guarded.filter((one) => one !== signal) };
  const { actions: neighbourActions, walks } = plan.neighbours;
  for (const action of neighbourActions) {
    yield { ...plan, neighbours: { walks, actions: neighbourActions.filter((one) => one !== action) } };
  }
  for (const walk of walks)
    yield { ...plan, neighbours: { actions: neighbourActions, walks: walks.filter((one) => one !== walk) } };
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

/** The smallest plan found in time that still fails: removes one part at a time while the failure remains. */
export async function minimise(plan: Plan, breaks: (plan: Plan) => Promise<boolean>): Promise<Plan> {
  const until = systemClock.mono() + boundMs;
  let smallest = plan;
  for (let shrunk = true; shrunk; ) {
    shrunk = false;
    for (const candidate of smaller(smallest)) {
      if (systemClock.mono() > until) return smallest;
      if (!(await breaks(candidate))) continue;
      smallest = candidate;
      shrunk = true;
      break;
    }
  }
  return smallest;
}

/** Describes a plan, to explain a failure. */
export function describePlan(plan: Plan): string[] {
  const { replicas, remote, clocks, ttlMs, travelMs, hintLoss, rewind, singleton } = plan;
  const connected = remote.flatMap((one, k) => (one ? [k] : []));
  const wrong = clocks.flatMap((clock, k) => (clock === rightClock ? [] : [`${k} ${JSON.stringify(clock)}`]));
  const lines = [
    `${replicas} replicas, TTL ${ttlMs}, travel ${travelMs}, hint loss ${hintLoss}`,
    `${plan.heals ? "healed" : "cut off"} at ${plan.healAtMs}, ${plan.resolver ? "with" : "without"} a resolver`,
    connected.length > 0 ? `over the wire: ${connected.join(", ")}` : "",
    wrong.length > 0 ? `wrong clocks: ${wrong.join("; ")}` : "",
    rewind === undefined ? "" : `at ${rewind.atMs} back to ${rewind.snapshotAtMs}, away for ${rewind.awayMs} ms`,
    singleton === undefined ? "" : `a singleton every ${singleton.everyMs} ms`,
    ...(plan.builds === undefined ? [] : [`builds ${JSON.stringify(plan.builds)}`]),
    ...(plan.shards === undefined ? [] : [`shards ${JSON.stringify(plan.shards)}`]),
    ...(plan.retention === undefined ? [] : [`retention ${JSON.stringify(plan.retention)}`]),
    ...plan.schedules.map((one) => `schedule ${JSON.stringify(one)}`),
    ...(plan.values.length > 0 ? [`${plan.values.length} writes of values`] : []),
    ...plan.runs.map((run) => `run ${JSON.stringify(run)}`),
    ...(plan.queues.queues.length > 0 ? [`queues ${JSON.stringify(plan.queues)}`] : []),
    ...(usesObjects(plan) ? [`objects ${JSON.stringify(plan.objects)}`] : []),
    ...plan.signals.map(({ run, gate, atMs, key }) => `at ${atMs} signal ${gate} to ${run}, ${key ?? "no key"}`),
    ...plan.callers.map(
      (one) => `at ${one.atMs} start ${one.id} in a transaction: ${one.commits ? "commit" : "rollback"}`,
    ),
    ...plan.guarded.map((one) => `at ${one.atMs} signal guarded to ${one.run} by ${one.by}: ${one.value}`),
    ...plan.neighbours.actions.map(({ atMs, what, n }) => `at ${atMs} a neighbour: ${what} (${n})`),
    ...plan.neighbours.walks.map((walk) => `at ${walk.atMs} a walk ${JSON.stringify(walk)}`),
    ...plan.strangers.map(({ atMs, what }) => `at ${atMs} a stranger: ${what}`),
    plan.talk === undefined ? "" : `talk ${JSON.stringify(plan.talk)}`,
    plan.unstarted === undefined ? "" : `unstarted ${JSON.stringify(plan.unstarted)}`,
    plan.wallStep === undefined
      ? ""
      : `at ${plan.wallStep.atMs} the store's wall clock is set by ${plan.wallStep.byMs}`,
    ...plan.actions.map(({ atMs, what, run }) => `at ${atMs} an operator: ${what} (${run})`),
    ...plan.faults.map(describeFault),
  ];
  return lines.filter((line) => line !== "");
}
