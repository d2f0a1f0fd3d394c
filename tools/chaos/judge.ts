import type { EffectRow } from "../../src/model/rows.ts";
import type { RunView } from "../../src/store/contract/store.ts";
import type { SingletonRequest, WorldRequest } from "./world.ts";

/** A run whose start was requested. */
export interface StartedRun {
  readonly id: string;
  readonly flow: string;
  readonly ms: number;
  /** The answer that was signalled to its gate. */
  readonly answer?: string;
}

/** From setting a clock until every process has noticed: meanwhile the machine has two clocks, which no real one has. */
export interface ClockChange {
  readonly from: number;
  until: number;
}

export interface Evidence {
  readonly started: readonly StartedRun[];
  /** Every run of the store, children included. */
  readonly runs: readonly RunView[];
  readonly effects: readonly EffectRow[];
  /** The world's ledger, in the world's order. */
  readonly requests: readonly WorldRequest[];
  /** Requests of the singleton that its guard accepted, in order. */
  readonly singletonRequests?: readonly SingletonRequest[];
  /** Workers that used each token towards the world. */
  readonly owners?: ReadonlyMap<string, ReadonlySet<string>>;
  /** Periods in which the machine's clock was being set: timers by the wall clock may then be early. */
  readonly clockChanges?: readonly ClockChange[];
  /** An asynchronous standby was promoted: acknowledged commits may be lost, and with them records of effects. */
  readonly loss?: boolean;
}

/** One rule, how many items it was checked against, and how it was broken, with evidence. */
export interface Rule {
  readonly rule: string;
  readonly checked: number;
  readonly broken: readonly string[];
}

export interface Verdict {
  readonly rules: readonly Rule[];
  /** Losses that no guarantee covers, as texts. */
  readonly lost: readonly string[];
}

/** Effects of each flow, in order. Compensations (`un…`) are not listed: they follow from the end of the run. */
const scripts: Readonly<Record<string, readonly string[]>> = {
  payment: ["pay 2", "wire 3", "mail 4", "post 5"],
  saga: ["book 1", "reserve 2", "rent 3", "book 4"],
  nap: ["mail 1", "mail 2"],
  late: ["mail 1", "mail 2"],
  approval: ["mail 1"],
  retried: ["mail 1", "mail 2"],
  spender: ["mail 1"],
  family: [],
  broken: [],
};
const childScript = ["book 1", "rent 2"];
const parents = new Set(["family", "broken"]);
const failing = new Set(["saga", "broken"]);
/** Effects that the world carries out once per key, however many requests it gets. */
const idempotent = new Set(["mail", "post", "reserve", "unreserve"]);
/** Of five concurrent purchases of one unit each, under a cap of three. */
const bought = 3;
/** Both times are from this machine's clock, but one of them may be rounded down. */
const roundingMs = 2;

/** Checks every rule. */
export function judge(evidence: Evidence): Verdict {
  const { requests, effects, runs, loss = false, singletonRequests, clockChanges = [] } = evidence;
  const owners = evidence.owners ?? new Map<string, ReadonlySet<string>>();
  const existing = new Set(runs.map(({ id }) => id));
  // Runs that were lost with their commits are not judged; the others are, as usual.
  const started = loss ? evidence.started.filter(({ id }) => existing.has(id)) : evidence.started;
  const repeats = repeated(requests, loss);
  const byRun = Map.groupBy(requests, ({ run }) => run);
  const wholes = started.flatMap(({ id, flow }) => [
    { id, flow, script: scripts[flow]! },
    ...(parents.has(flow) ? [1, 2] : []).map((k) => ({ id: `${id}/${k}`, flow, script: childScript })),
  ]);
  const gated = started.filter(({ flow }) => flow === "approval" || flow === "late");
  const spenders = started.filter(({ flow }) => flow === "spender");
  const timers = started.filter(
    ({ id, flow }) => (flow === "nap" || flow === "late") && !clockChangedDuring(byRun.get(id) ?? [], clockChanges),
  );
  const lostRuns = evidence.started.length - started.length;
  const rule = (text: string, checked: number, broken: readonly string[]): Rule => ({ rule: text, checked, broken });
  return {
    rules: [
      rule("every acknowledged start exists, and its run ended as expected", started.length, settled(started, runs)),
      rule("no effect and no compensation happened twice", requests.length, repeats.broken),
      rule(
        "every effect happened, and a failed run compensated them newest first",
        wholes.length,
        wholes.flatMap(({ id, flow, script }) => followed(id, script, failing.has(flow), byRun.get(id) ?? [], loss)),
      ),
      rule("the journal agrees with the world's ledger", effects.length, agreeing(evidence)),
      rule("every signal arrived, and a gate that timed out returned that", gated.length, answered(gated, runs)),
      rule(
        "no timer fired early",
        timers.length,
        timers.flatMap((run) => early(run, byRun.get(run.id) ?? [])),
      ),
      rule("parallel spending stayed within its cap", spenders.length, capped(spenders, runs)),
      rule("every token has one owner", owners.size, oneOwner(owners)),
      ...(singletonRequests === undefined
        ? []
        : [
            rule(
              "the singleton has one holder at a time, and tokens never decrease",
              singletonRequests.length,
              oneHolder(singletonRequests),
            ),
          ]),
    ],
    lost: [
      ...(lostRuns > 0 ? [`${lostRuns} acknowledged starts`] : []),
      ...(repeats.excused > 0 ? [`${repeats.excused} effects that were repeated because their record was lost`] : []),
    ],
  };
}

/** Every run has ended, and as expected. */
function settled(started: readonly StartedRun[], runs: readonly RunView[]): string[] {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const ids = new Set(started.map(({ id }) => id));
  const orphans = runs.filter(({ id, endedAt }) => !ids.has(id) && endedAt === null);
  return [
    ...orphans.map((run) => `child ${run.id} is ${run.status}, not ended`),
    ...started.flatMap(({ id, flow }) => {
      const run = byId.get(id);
      if (run === undefined) return [`run ${id} was started and does not exist`];
      const expected = failing.has(flow) ? "COMPENSATED" : "COMPLETED";
      return run.status === expected ? [] : [`run ${id} is ${run.status}, not ${expected}: ${String(run.outcome)}`];
    }),
  ];
}

const completed = (runs: readonly RunView[]): ReadonlyMap<string, RunView> =>
  new Map(runs.filter(({ status }) => status === "COMPLETED").map((run) => [run.id, run]));

/** In runs that completed, the gate returned the signalled answer. */
function answered(gated: readonly StartedRun[], runs: readonly RunView[]): string[] {
  const byId = completed(runs);
  return gated.flatMap(({ id, flow, answer: signalled }) => {
    const run = byId.get(id);
    const answer = flow === "late" ? "timeout" : signalled;
    if (run === undefined || answer === undefined || run.outcome === answer) return [];
    return [`run ${id} got ${String(run.outcome)} at its gate, not ${answer}`];
  });
}

function capped(spenders: readonly StartedRun[], runs: readonly RunView[]): string[] {
  const byId = completed(runs);
  return spenders.flatMap(({ id }) => {
    const run = byId.get(id);
    if (run === undefined || run.outcome === bought) return [];
    return [`run ${id} spent ${String(run.outcome)} of its budget, not ${bought}`];
  });
}

const nameOf = ({ name, n }: WorldRequest): string => `${name} ${n}`;
const describe = (request: WorldRequest): string =>
  `${nameOf(request)} (${request.key}, token ${request.token}, by ${request.worker})`;

/** The epoch of the store that issued a token: the bits above its counter. */
const epochOf = ({ token }: WorldRequest): bigint => BigInt(token) >> 40n;

/**
 * No effect and no compensation happens twice: neither under one key nor, with a fresh key, for one purpose. Where commits
 * were lost, a non-idempotent effect may happen once more under each further epoch of the store, and no more often.
 */
function repeated(requests: readonly WorldRequest[], loss: boolean): { broken: string[]; excused: number } {
  const broken: string[] = [];
  let excused = 0;
  for (const [what, same] of Map.groupBy(requests, (request) => `${request.run} ${nameOf(request)}`)) {
    if (same.length < 2) continue;
    const isExcused = loss && !idempotent.has(same[0]!.name) && new Set(same.map(epochOf)).size === same.length;
    if (isExcused) excused++;
    else broken.push(`happened ${same.length} times: ${what}: ${same.map(describe).join(", ")}`);
  }
  return { broken, excused };
}

/** Of repeated requests only the last one, which the journal knows. */
function latest(requests: readonly WorldRequest[]): WorldRequest[] {
  return requests.filter((request, k) => !requests.slice(k + 1).some((other) => nameOf(other) === nameOf(request)));
}

/** Of repeated requests only the first one: a journal that lost its record repeats the effect, or observes that it happened. */
function earliest(requests: readonly WorldRequest[]): WorldRequest[] {
  return requests.filter((request, k) => !requests.slice(0, k).some((other) => nameOf(other) === nameOf(request)));
}

/** A token belongs to one owner forever. */
function oneOwner(owners: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return [...owners]
    .filter(([, workers]) => workers.size > 1)
    .map(([term, workers]) => `one token, several owners: ${term} was used by ${[...workers].join(" and ")}`);
}

/** Accepted requests of the singleton: one process under each token, and never a lower token after a higher one. */
function oneHolder(singletonRequests: readonly SingletonRequest[]): string[] {
  const broken: string[] = [];
  for (const [token, same] of Map.groupBy(singletonRequests, (request) => request.token)) {
    const workers = [...new Set(same.map(({ worker }) => worker))];
    if (workers.length > 1) broken.push(`the singleton ran under token ${token} in ${workers.join(" and ")}`);
  }
  singletonRequests.forEach((request, k) => {
    const before = singletonRequests[k - 1];
    if (before !== undefined && BigInt(request.token) < BigInt(before.token))
      broken.push(`the singleton's guard accepted ${request.worker} under ${request.token} after ${before.token}`);
  });
  return broken;
}

/** Every effect happened. A failed run compensated all of them, newest first; a healthy run compensated none. */
function followed(
  run: string,
  script: readonly string[],
  failed: boolean,
  all: readonly WorldRequest[],
  loss: boolean,
): string[] {
  const requests = loss ? latest(all) : all;
  const done = requests.filter(({ name }) => !name.startsWith("un")).map(nameOf);
  const compensations = requests.filter(({ name }) => name.startsWith("un"));
  const broken: string[] = [];
  if (done.toSorted().join() !== script.toSorted().join()) {
    broken.push(`run ${run} executed ${done.join(", ") || "nothing"}, not ${script.join(", ")}`);
  }
  const expected = failed ? script.toReversed().map((line) => `un${line}`) : [];
  const inOrder = (some: readonly WorldRequest[]): boolean => some.map(nameOf).join() === expected.join();
  if (!inOrder(compensations) && !(loss && inOrder(earliest(all).filter(({ name }) => name.startsWith("un"))))) {
    const order = expected.length > 0 ? `${expected.join(", ")}, newest first` : "nothing";
    broken.push(`run ${run} compensated ${compensations.map(describe).join(", ") || "nothing"}, not ${order}`);
  }
  const first = requests.findIndex(({ name }) => name.startsWith("un"));
  // An effect whose record was lost was repeated, and its first execution may have been compensated before.
  if (!loss && first >= 0 && requests.slice(first).some(({ name }) => !name.startsWith("un"))) {
    broken.push(`run ${run} executed an effect after its first compensation: ${requests.map(nameOf).join(", ")}`);
  }
  return broken;
}

function clockChangedDuring(requests: readonly WorldRequest[], clockChanges: readonly ClockChange[]): boolean {
  const [from, to] = [requests.at(0)?.at ?? 0, requests.at(-1)?.at ?? 0];
  return clockChanges.some((change) => change.from <= to && from <= change.until);
}

/** The requests before and after a sleep or a time-out are at least its length apart. */
function early({ id, ms }: StartedRun, requests: readonly WorldRequest[]): string[] {
  const before = requests.find(({ n }) => n === 1);
  const after = requests.find(({ n }) => n === 2);
  if (before === undefined || after === undefined) return []; // another rule reports it
  const slept = after.at - before.at;
  return slept >= ms - roundingMs ? [] : [`the timer of run ${id} fired after ${slept} ms, not ${ms}: too early`];
}

/** The journal agrees with the world's ledger. */
function agreeing({ effects, requests }: Evidence): string[] {
  const keys = new Set(requests.map(({ key }) => key));
  const executed = new Set(["CONFIRMED", "COMPENSATED"]);
  const notExecuted = new Set(["FAILED", "WITHDRAWN", "DISCHARGED"]);
  return effects.flatMap((effect) => {
    const { name, key, status, semantics, role } = effect;
    if (semantics === "read" && role === "effect") return [];
    const what = `${role} ${name} ${key}`;
    if (executed.has(status)) return keys.has(key) ? [] : [`${what} is ${status}, and the ledger does not have it`];
    if (notExecuted.has(status)) return keys.has(key) ? [`${what} is ${status}, and the ledger has it`] : [];
    return [`${what} is still ${status}`];
  });
}
