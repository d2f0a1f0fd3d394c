import type { Tape } from "../../src/host/tape.ts";
import type { EffectRow } from "../../src/model/rows.ts";
import type { RunView } from "../../src/store/contract/store.ts";
import type { Evidence } from "./judge.ts";
import { persistently } from "./store-calls.ts";
import type { World } from "./world.ts";

export async function allRuns({ runs }: Tape): Promise<RunView[]> {
  const all: RunView[] = [];
  for (;;) {
    const before = all.at(-1)?.journal;
    const page = await persistently(() => runs.list({ limit: 500, ...(before === undefined ? {} : { before }) }));
    if (page.length === 0) return all;
    all.push(...page);
  }
}

/** One query per run, because lists are limited. */
export async function allEffects(client: Tape): Promise<EffectRow[]> {
  const all: EffectRow[] = [];
  for (const { id } of await allRuns(client))
    all.push(...(await persistently(() => client.store.read.effects(client.tenant, { run: id }))));
  return all;
}

/** What blocks each run that has not ended, at most five: the first question of a reader of the report. */
export async function whyUnsettled(client: Tape, { runs }: Evidence): Promise<string[]> {
  const lines: string[] = [];
  for (const run of runs.filter(({ endedAt }) => endedAt === null).slice(0, 5)) {
    const last = (await Array.fromAsync(client.journal(run.id))).at(-1);
    const { state, label, nextReactor } = run.lease;
    lines.push(
      `${run.id}: lease ${state} of ${label}, next reactor ${nextReactor}, notes ${run.notes}, last ${JSON.stringify(last, bigintText)}`,
    );
    for (const timer of await client.store.read.timers(client.tenant, { run: run.id })) {
      lines.push(`${run.id}: timer ${timer.purpose} at ${timer.pos} is ${timer.status}`);
    }
  }
  return lines;
}

const bigintText = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

/** How often each interesting state was reached: faults that reach none of them prove nothing. */
export function statesOf({ started, effects, singletonRequests }: Evidence, world: World): Record<string, number> {
  const count = (test: (effect: EffectRow) => boolean): number => effects.filter(test).length;
  const flows = [...Map.groupBy(started, ({ flow }) => flow)].map(([flow, runs]) => [`runs of ${flow}`, runs.length]);
  return {
    ...Object.fromEntries(flows),
    "an effect in doubt that an observation settled": count(
      ({ reason }) => reason === "observed" || reason === "ABSENT",
    ),
    "an effect that was retried": count(({ attempt }) => attempt > 1),
    "an obligation that was carried out": count(({ status }) => status === "COMPENSATED"),
    "an obligation that was discharged": count(({ status }) => status === "DISCHARGED"),
    ...(singletonRequests && {
      "a takeover of the singleton": Math.max(0, new Set(singletonRequests.map(({ token }) => token)).size - 1),
      [staleHolder]: world.staleSingletonRequests,
    }),
    [staleOwner]: world.stale,
  };
}

const staleHolder = "a request of a stale holder of the singleton, rejected";
const staleOwner = "a request of a fenced-out owner, rejected";

/** Reached by chance, and not within seconds: only the long version requires these. */
export const rareStates: readonly string[] = [staleHolder, staleOwner];

/** The states that none of several rounds reached. */
export function unreachedStates(
  rounds: readonly Readonly<Record<string, number>>[],
  optional: readonly string[] = [],
): string[] {
  const names = new Set(rounds.flatMap((states) => Object.keys(states)));
  return [...names]
    .filter((name) => !optional.includes(name) && rounds.every((states) => (states[name] ?? 0) === 0))
    .map((name) => `inconclusive: never reached: ${name}`);
}

export function summary(
  { started, runs, effects, requests, singletonRequests }: Evidence,
  world: World,
  settledMs: number,
): string[] {
  const countBy = <T>(items: readonly T[], by: (item: T) => string): string =>
    [...Map.groupBy(items, by)]
      .map(([name, same]) => `${same.length} ${name}`)
      .toSorted()
      .join(", ");
  const behaviours = Object.entries(world.behaviourCounts).map(([behaviour, n]) => `${n} ${behaviour}`);
  return [
    `runs: ${started.length} started, with children ${runs.length}: ${countBy(runs, ({ status }) => status)}; the last ended ${settledMs} ms after the faults`,
    `world: ${requests.length} requests carried out (${countBy(requests, ({ name }) => name)}); ${world.stale} requests of fenced-out owners rejected`,
    ...(singletonRequests === undefined
      ? []
      : [
          `singleton: ${singletonRequests.length} requests under ${new Set(singletonRequests.map(({ token }) => token)).size} tokens, ${world.staleSingletonRequests} of stale holders rejected`,
        ]),
    `behaviour of the world: ${behaviours.join(", ")}`,
    `effects: ${countBy(
      effects.filter(({ role }) => role === "effect"),
      ({ reason }) => String(reason),
    )}`,
    `obligations: ${countBy(
      effects.filter(({ role }) => role === "compensation"),
      ({ status, reason }) => (status === "DISCHARGED" ? status : `${status} (${reason})`),
    )}`,
  ];
}
