import type { EffectRow } from "../../src/model/rows.ts";
import type { RunView } from "../../src/store/contract/store.ts";
import type { Deed, Lead } from "./world.ts";

/** A run as it was asked for. */
export interface Started {
  readonly id: string;
  readonly flow: string;
  readonly ms: number;
  /** What was signalled to its gate. */
  readonly said?: string;
}

/** From when a clock was set until every process had noticed: so long the machine has two clocks, which no real one has. */
export interface Stretch {
  readonly from: number;
  until: number;
}

export interface Evidence {
  readonly started: readonly Started[];
  /** Every run of the store, children included. */
  readonly runs: readonly RunView[];
  readonly effects: readonly EffectRow[];
  /** The world's own ledger, in its order. */
  readonly deeds: readonly Deed[];
  /** Acts of the singleton that its guard let pass, in their order. */
  readonly leads?: readonly Lead[];
  /** Who came to the world with which token. */
  readonly owners?: ReadonlyMap<string, ReadonlySet<string>>;
  /** Whenever the machine's clock was being set: a timer by the wall clock may then be early. */
  readonly unsteady?: readonly Stretch[];
  /** An asynchronous standby was promoted: acknowledged commits may be gone, and with them what had been done. */
  readonly loss?: boolean;
}

/** One rule, how many things it was held against, and how it was broken, with evidence. */
export interface Rule {
  readonly rule: string;
  readonly looked: number;
  readonly broken: readonly string[];
}

export interface Verdict {
  readonly rules: readonly Rule[];
  /** What is not promised and was met, in words. */
  readonly lost: readonly string[];
}

/** What each flow does in the world, in order; `un…` are not listed: they follow from the end of the run. */
const scripts: Readonly<Record<string, readonly string[]>> = {
  acts: ["pay 2", "wire 3", "mail 4", "post 5"],
  saga: ["book 1", "reserve 2", "rent 3", "book 4"],
  nap: ["mail 1", "mail 2"],
  late: ["mail 1", "mail 2"],
  asked: ["mail 1"],
  again: ["mail 1", "mail 2"],
  spender: ["mail 1"],
  family: [],
  broken: [],
};
const childScript = ["book 1", "rent 2"];
const parents = new Set(["family", "broken"]);
const failing = new Set(["saga", "broken"]);
/** What the other side does once for a key, however often it is asked. */
const idempotent = new Set(["mail", "post", "reserve", "unreserve"]);
/** Of five who ask at once for one unit each, with a cap of three. */
const bought = 3;
/** Both clocks are this machine's, but one of them may be rounded down. */
const roundingMs = 2;

/** Looks at every rule. */
export function judge(evidence: Evidence): Verdict {
  const { deeds, effects, runs, loss = false, leads = [], unsteady = [] } = evidence;
  const owners = evidence.owners ?? new Map<string, ReadonlySet<string>>();
  const there = new Set(runs.map(({ id }) => id));
  // What was lost with its commits is nobody's run any more; the rest is judged as ever.
  const started = loss ? evidence.started.filter(({ id }) => there.has(id)) : evidence.started;
  const doubles = twice(deeds, loss);
  const byRun = Map.groupBy(deeds, ({ run }) => run);
  const wholes = started.flatMap(({ id, flow }) => [
    { id, flow, script: scripts[flow]! },
    ...(parents.has(flow) ? [1, 2] : []).map((k) => ({ id: `${id}/${k}`, flow, script: childScript })),
  ]);
  const asked = started.filter(({ flow }) => flow === "asked" || flow === "late");
  const spenders = started.filter(({ flow }) => flow === "spender");
  const timers = started.filter(
    ({ id, flow }) => (flow === "nap" || flow === "late") && !setUnder(byRun.get(id) ?? [], unsteady),
  );
  const lostRuns = evidence.started.length - started.length;
  const rule = (words: string, looked: number, broken: readonly string[]): Rule => ({ rule: words, looked, broken });
  return {
    rules: [
      rule("an acknowledged start is there, and its run ended as it had to", started.length, settled(started, runs)),
      rule("no act and no inverse was done twice", deeds.length, doubles.broken),
      rule(
        "everything was done, and undone newest first where the run failed",
        wholes.length,
        wholes.flatMap(({ id, flow, script }) => played(id, script, failing.has(flow), byRun.get(id) ?? [], loss)),
      ),
      rule("what the journal believes is what the world did", effects.length, believed(evidence)),
      rule("a signal arrived, a gate that timed out said so", asked.length, answered(asked, runs)),
      rule(
        "no timer fired early",
        timers.length,
        timers.flatMap((run) => early(run, byRun.get(run.id) ?? [])),
      ),
      rule("parallel spending stayed within its cap", spenders.length, capped(spenders, runs)),
      rule("one token, one owner", owners.size, oneOwner(owners)),
      rule("one holder of the singleton at a time, tokens never fall", leads.length, oneHolder(leads)),
    ],
    lost: [
      ...(lostRuns > 0 ? [`${lostRuns} acknowledged starts`] : []),
      ...(doubles.across > 0 ? [`${doubles.across} acts that were done again because their record was lost`] : []),
    ],
  };
}

/** All runs have ended, and as they should. */
function settled(started: readonly Started[], runs: readonly RunView[]): string[] {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const ids = new Set(started.map(({ id }) => id));
  const orphans = runs.filter(({ id, endedAt }) => !ids.has(id) && endedAt === null);
  return [
    ...orphans.map((run) => `child ${run.id} is ${run.status}, not ended`),
    ...started.flatMap(({ id, flow }) => {
      const run = byId.get(id);
      if (run === undefined) return [`run ${id} was started and is not there`];
      const wanted = failing.has(flow) ? "COMPENSATED" : "COMPLETED";
      return run.status === wanted ? [] : [`run ${id} is ${run.status}, not ${wanted}: ${String(run.outcome)}`];
    }),
  ];
}

const completed = (runs: readonly RunView[]): ReadonlyMap<string, RunView> =>
  new Map(runs.filter(({ status }) => status === "COMPLETED").map((run) => [run.id, run]));

/** Of runs that completed: what was signalled came out of the gate. */
function answered(asked: readonly Started[], runs: readonly RunView[]): string[] {
  const byId = completed(runs);
  return asked.flatMap(({ id, flow, said }) => {
    const run = byId.get(id);
    const answer = flow === "late" ? "timeout" : said;
    if (run === undefined || answer === undefined || run.outcome === answer) return [];
    return [`run ${id} got ${String(run.outcome)} at its gate, not ${answer}`];
  });
}

function capped(spenders: readonly Started[], runs: readonly RunView[]): string[] {
  const byId = completed(runs);
  return spenders.flatMap(({ id }) => {
    const run = byId.get(id);
    if (run === undefined || run.outcome === bought) return [];
    return [`run ${id} spent ${String(run.outcome)} of its budget, not ${bought}`];
  });
}

const nameOf = ({ name, n }: Deed): string => `${name} ${n}`;
const lineOf = (deed: Deed): string => `${nameOf(deed)} (${deed.key}, token ${deed.token}, by ${deed.worker})`;

/** Which epoch of the store issued a token: the bits above its counter. */
const epochOf = ({ token }: Deed): bigint => BigInt(token) >> 40n;

/**
 * No act and no inverse is done twice: neither under one key nor, with a fresh key, for one purpose. Where commits were
 * lost, what is not idempotent may be done once more under the tokens of the store's next epoch, and no more often.
 */
function twice(deeds: readonly Deed[], loss: boolean): { broken: string[]; across: number } {
  const broken: string[] = [];
  let across = 0;
  for (const [what, same] of Map.groupBy(deeds, (deed) => `${deed.run} ${nameOf(deed)}`)) {
    if (same.length < 2) continue;
    const excused = loss && !idempotent.has(same[0]!.name) && new Set(same.map(epochOf)).size === same.length;
    if (excused) across++;
    else broken.push(`done ${same.length} times: ${what}: ${same.map(lineOf).join(", ")}`);
  }
  return { broken, across };
}

/** Of what was done again only the last time: the one that the journal knows. */
function latest(deeds: readonly Deed[]): Deed[] {
  return deeds.filter((deed, k) => !deeds.slice(k + 1).some((other) => nameOf(other) === nameOf(deed)));
}

/** And only the first time: what a journal has forgotten is done again, or found to have been done. */
function earliest(deeds: readonly Deed[]): Deed[] {
  return deeds.filter((deed, k) => !deeds.slice(0, k).some((other) => nameOf(other) === nameOf(deed)));
}

/** Whoever comes with a token has it alone, for ever. */
function oneOwner(owners: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return [...owners]
    .filter(([, who]) => who.size > 1)
    .map(([term, who]) => `one token, several owners: ${term} was used by ${[...who].join(" and ")}`);
}

/** The singleton's acts that went through: under each token one process, and never a lower token after a higher one. */
function oneHolder(leads: readonly Lead[]): string[] {
  const broken: string[] = [];
  for (const [token, same] of Map.groupBy(leads, (lead) => lead.token)) {
    const who = [...new Set(same.map(({ worker }) => worker))];
    if (who.length > 1) broken.push(`the singleton acted under token ${token} in ${who.join(" and ")}`);
  }
  leads.forEach((lead, k) => {
    const before = leads[k - 1];
    if (before !== undefined && BigInt(lead.token) < BigInt(before.token))
      broken.push(`the singleton's guard let ${lead.worker} act under ${lead.token} after ${before.token}`);
  });
  return broken;
}

/** Everything was done, and what had to be undone was undone, newest first; a healthy run's deeds stand. */
function played(
  run: string,
  script: readonly string[],
  undone: boolean,
  all: readonly Deed[],
  loss: boolean,
): string[] {
  const deeds = loss ? latest(all) : all;
  const done = deeds.filter(({ name }) => !name.startsWith("un")).map(nameOf);
  const undoings = deeds.filter(({ name }) => name.startsWith("un"));
  const broken: string[] = [];
  if (done.toSorted().join() !== script.toSorted().join()) {
    broken.push(`run ${run} did ${done.join(", ") || "nothing"} in the world, not ${script.join(", ")}`);
  }
  const wanted = undone ? script.toReversed().map((line) => `un${line}`) : [];
  const inOrder = (some: readonly Deed[]): boolean => some.map(nameOf).join() === wanted.join();
  if (!inOrder(undoings) && !(loss && inOrder(earliest(all).filter(({ name }) => name.startsWith("un"))))) {
    const order = wanted.length > 0 ? `${wanted.join(", ")}, newest first` : "nothing";
    broken.push(`run ${run} undid ${undoings.map(lineOf).join(", ") || "nothing"}, not ${order}`);
  }
  const first = deeds.findIndex(({ name }) => name.startsWith("un"));
  // Where the record of an act was lost it was done again, and in the world it may have been undone before.
  if (!loss && first >= 0 && deeds.slice(first).some(({ name }) => !name.startsWith("un"))) {
    broken.push(`run ${run} did something after it had begun to undo: ${deeds.map(nameOf).join(", ")}`);
  }
  return broken;
}

function setUnder(deeds: readonly Deed[], unsteady: readonly Stretch[]): boolean {
  const [from, to] = [deeds.at(0)?.at ?? 0, deeds.at(-1)?.at ?? 0];
  return unsteady.some((stretch) => stretch.from <= to && from <= stretch.until);
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
    if (semantics === "read" && role === "effect") return [];
    const what = `${role} ${name} ${key}`;
    if (happened.has(status)) return keys.has(key) ? [] : [`${what} is ${status}, and the world knows nothing of it`];
    if (not.has(status)) return keys.has(key) ? [`${what} is ${status}, and the world has done it`] : [];
    return [`${what} is still ${status}`];
  });
}
