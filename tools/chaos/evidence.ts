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

/** By run, because lists are limited. */
export async function allEffects(client: Tape): Promise<EffectRow[]> {
  const all: EffectRow[] = [];
  for (const { id } of await allRuns(client))
    all.push(...(await persistently(() => client.store.read.effects(client.tenant, { run: id }))));
  return all;
}

/** What holds up each run that has not ended: the first question of whoever reads the report. */
export async function whyUnsettled(client: Tape, { runs }: Evidence): Promise<string[]> {
  const lines: string[] = [];
  for (const run of runs.filter(({ endedAt }) => endedAt === null).slice(0, 5)) {
    const last = (await Array.fromAsync(client.journal(run.id))).at(-1);
    const { state, label, nextReactor } = run.lease;
    lines.push(
      `${run.id}: lease ${state} of ${label}, wants ${nextReactor}, notes ${run.notes}, last ${JSON.stringify(last, bigintText)}`,
    );
    for (const timer of await client.store.read.timers(client.tenant, { run: run.id })) {
      lines.push(`${run.id}: timer ${timer.purpose} at ${timer.pos} is ${timer.status}`);
    }
  }
  return lines;
}

const bigintText = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

/** How often each interesting state was reached: a run of faults that reaches none of them proves nothing. */
export function statesOf({ started, effects, leads = [] }: Evidence, world: World): Record<string, number> {
  const count = (test: (effect: EffectRow) => boolean): number => effects.filter(test).length;
  const flows = [...Map.groupBy(started, ({ flow }) => flow)].map(([flow, runs]) => [`runs of ${flow}`, runs.length]);
  return {
    ...Object.fromEntries(flows),
    "a doubt that a look settled": count(({ reason }) => reason === "observed" || reason === "ABSENT"),
    "an act that was tried again": count(({ attempt }) => attempt > 1),
    "an obligation that was carried out": count(({ status }) => status === "COMPENSATED"),
    "an obligation that was discharged": count(({ status }) => status === "DISCHARGED"),
    "a hand-over of the singleton": Math.max(0, new Set(leads.map(({ token }) => token)).size - 1),
    [staleLead]: world.staleLeads,
    [staleAct]: world.stale,
  };
}

const staleLead = "an act of a stale holder of the singleton, refused";
const staleAct = "a request of a fenced-out owner, refused";

/** Reached by chance, and not in a few seconds: only the long version asks for these. */
export const rareStates: readonly string[] = [staleLead, staleAct];

/** Of several rounds on one store, what none of them reached. */
export function unreached(
  rounds: readonly Readonly<Record<string, number>>[],
  spared: readonly string[] = [],
): string[] {
  const names = new Set(rounds.flatMap((states) => Object.keys(states)));
  return [...names]
    .filter((name) => !spared.includes(name) && rounds.every((states) => (states[name] ?? 0) === 0))
    .map((name) => `worthless: there was not ${name}`);
}

export function summary({ started, runs, effects, deeds }: Evidence, world: World, settledMs: number): string[] {
  const tally = <T>(items: readonly T[], by: (item: T) => string): string =>
    [...Map.groupBy(items, by)]
      .map(([name, same]) => `${same.length} ${name}`)
      .toSorted()
      .join(", ");
  const whims = Object.entries(world.played).map(([whim, n]) => `${n} ${whim}`);
  return [
    `runs: ${started.length} started, with children ${runs.length}: ${tally(runs, ({ status }) => status)}; the last ended ${settledMs} ms after the faults`,
    `world: ${deeds.length} deeds (${tally(deeds, ({ name }) => name)}); ${world.stale} requests of fenced-out owners refused`,
    `singleton: ${world.leads.length} acts under ${new Set(world.leads.map(({ token }) => token)).size} tokens, ${world.staleLeads} of stale holders refused`,
    `requests: ${whims.join(", ")}`,
    `acts: ${tally(
      effects.filter(({ role }) => role === "effect"),
      ({ reason }) => String(reason),
    )}`,
    `obligations: ${tally(
      effects.filter(({ role }) => role === "compensation"),
      ({ status, reason }) => (status === "DISCHARGED" ? status : `${status} (${reason})`),
    )}`,
  ];
}
