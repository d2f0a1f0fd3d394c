import { systemClock } from "../../../src/base/clock.ts";
import { Tape } from "../../../src/host/tape.ts";
import { createRunner } from "../../../src/sdk/workflow.ts";
import type { FeedRecord, Store } from "../../../src/store/contract/store.ts";
import type { Injection } from "../fault.ts";
import type { Rule } from "../judge.ts";
import { BuildProcess, type End, preStopHook } from "./processes.ts";
import { after, type Build, before, paid, stepsOf } from "./program.ts";

export interface DeployOptions {
  readonly url: string;
  readonly folder: string;
  readonly ttlMs: number;
  /** Of each build. */
  readonly processes: number;
  /** That are live and pinned to the old build when the new one arrives. */
  readonly runs: number;
  /** That start after the new build is current. */
  readonly later: number;
  readonly progress?: (line: string) => void;
}

export interface DeployReport {
  readonly rules: readonly Rule[];
  readonly kill: Injection;
  /** From the first process of the new build to the end of the last of the old one. */
  readonly deployMs: number;
  /** From the last signal to the end of the last process of the old build. */
  readonly drainMs: number;
  readonly terms: number;
}

export const killKind = "kill -9 of a process of the old build";

const tenant = "default";
/** Processes learn within this time that another build is current. */
const currentMs = 5_500;
/** Runs in one statement. */
const together = 250;
const boundMs = 240_000;

/** A deploy as docs/builds.md describes it, with real processes. One of the old ones is killed while it works. */
export async function rollingDeploy(options: DeployOptions): Promise<DeployReport> {
  const { url, folder, ttlMs, progress = () => {} } = options;
  const all: BuildProcess[] = [];
  const hooks: ReturnType<typeof preStopHook>[] = [];
  const started = async (build: Build): Promise<BuildProcess[]> => {
    const made = Array.from(
      { length: options.processes },
      (_, k) => new BuildProcess(build, k + 1, { url, ttlMs }, folder),
    );
    all.push(...made);
    await Promise.all(made.map(({ ready }) => ready));
    return made;
  };
  const client = await Tape.open({ store: url, runner: createRunner({ workflows: [] }), work: false, log: "silent" });
  try {
    const { store } = client;
    const old = await started(before);
    const ids = Array.from({ length: options.runs }, (_, k) => `order-${k}`);
    await create(store, ids);
    await until("the runs are pinned", async () => (await liveOf(client, before)) === ids.length);
    progress(`${ids.length} live runs of ${before}`);

    const from = systemClock.mono();
    await started(after);
    await until("the new build is listed", async () => (await liveOf(client, after)) !== undefined);
    await client.builds.current(after, { by: "deploy", reason: "rolling deploy" });
    const currentAt = systemClock.mono();
    hooks.push(...old.slice(1).map(() => preStopHook(url, before)));
    const half = Math.ceil(ids.length / 2);
    await pay(client, ids.slice(0, half));
    const kill = await killed(store, old[0]!, (await liveOf(client, before)) ?? 0);
    await systemClock.sleep(Math.max(0, currentAt + currentMs - systemClock.mono()));

    const later = Array.from({ length: options.later }, (_, k) => `later-${k}`);
    await create(store, later);
    await until("the new runs are pinned", async () => (await pins(store, later)).every((pin) => pin !== null));
    const newPins = await pins(store, later);
    progress(`${later.length} new runs of ${after}`);

    await pay(client, ids.slice(half));
    const paidAt = systemClock.mono();
    const ends = await Promise.all(old.slice(1).map((one, k) => stopped(one, hooks[k]!.end)));
    const [deployMs, drainMs] = [systemClock.mono() - from, systemClock.mono() - paidAt];
    const liveAfter = await liveOf(client, after);
    progress(`the old processes have ended after ${Math.round(deployMs)} ms`);

    await pay(client, later);
    await until("all runs have ended", async () => (await liveOf(client, after)) === 0);
    const feed = await feedOf(store);
    const rules = [
      await outcomesAre(store, ids, before),
      await outcomesAre(store, later, after),
      rule("new runs get the current build", newPins, (pin) => pin === after),
      rule("no run of the new build ended before the old processes did", [liveAfter], (live) => live === later.length),
      ...feedRules(feed),
      rule("no process logged a divergence", all, (one) => one.logged("TAPE_DIVERGED").length === 0),
      rule("hooks and old processes exit with 0", ends.flat(), (end) => end === 0),
    ];
    return { rules, kill, deployMs, drainMs, terms: termsOf(feed).length };
  } finally {
    for (const one of [...all, ...hooks]) one.kill("SIGKILL");
    await Promise.all(all.map(({ end }) => end));
    await client.close();
  }
}

async function create(store: Store, ids: readonly string[]): Promise<void> {
  for (let k = 0; k < ids.length; k += together) {
    // Sleeps of different length, so that timers fall due during the whole deploy.
    const specs = ids.slice(k, k + together).map((id, n) => ({ id, workflow: "order", input: { ms: (n % 20) * 100 } }));
    await store.intake.createRuns(tenant, specs);
  }
}

async function pay(client: Tape, ids: readonly string[]): Promise<void> {
  for (let k = 0; k < ids.length; k += 20)
    await Promise.all(ids.slice(k, k + 20).map((id) => client.signal(id, paid, undefined)));
}

const liveOf = async (client: Tape, build: Build): Promise<number | undefined> =>
  (await client.builds.list()).find((one) => one.build === build)?.live;

const pins = (store: Store, ids: readonly string[]): Promise<(string | null)[]> =>
  Promise.all(ids.map(async (id) => (await store.read.run(tenant, id))?.lease.build ?? null));

/** Kills it as soon as it holds a run. */
async function killed(store: Store, victim: BuildProcess, live: number): Promise<Injection> {
  let held = 0;
  for (const until = systemClock.mono() + 3_000; held === 0 && systemClock.mono() < until; ) {
    const leases = await store.read.leases(tenant, { held: true, limit: 1_000 });
    held = leases.filter(({ label, reactor }) => label === victim.label && reactor !== null).length;
  }
  victim.kill("SIGKILL");
  await victim.end;
  return {
    kind: killKind,
    effective: held > 0 && live > 0,
    hit: [`held ${held} leases`],
    outcome: ["replaced by its own build"],
  };
}

/** SIGTERM after its hook, as a container is stopped. */
async function stopped(one: BuildProcess, hook: Promise<End>): Promise<End[]> {
  const waited = await hook;
  one.kill("SIGTERM");
  return [waited, await one.end];
}

async function until(what: string, is: () => Promise<boolean>): Promise<void> {
  for (const to = systemClock.mono() + boundMs; !(await is()); await systemClock.sleep(50))
    if (systemClock.mono() > to) throw new Error(`${boundMs} ms passed before ${what}`);
}

async function feedOf(store: Store): Promise<FeedRecord[]> {
  const records: FeedRecord[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await store.read.feed(cursor, undefined, tenant);
    records.push(...page.records);
    cursor = page.cursor;
    if (page.records.length === 0 && page.more !== true) return records;
  }
}

/** Every term in which code of a run may have been executed. */
function termsOf(feed: readonly FeedRecord[]): { readonly id: string; readonly label: string }[] {
  const ids = new Map(feed.flatMap((r) => (r.kind === "run.created" ? [[r.journal, r.data.id] as const] : [])));
  return feed.flatMap((r) => {
    const id = ids.get(r.journal);
    return r.kind === "term.started" && r.data.reactor === "recovery" && id !== undefined
      ? [{ id, label: r.data.label }]
      : [];
  });
}

function feedRules(feed: readonly FeedRecord[]): Rule[] {
  const buildOf = (id: string): Build => (id.startsWith("order-") ? before : after);
  const ends = feed.filter(({ kind }) => kind === "run.ended" || kind === "run.stuck");
  return [
    rule("a run's terms are held by processes of its build", termsOf(feed), ({ label, id }) =>
      label.startsWith(`${buildOf(id)}-`),
    ),
    rule("no run got stuck", ends, ({ kind }) => kind !== "run.stuck"),
  ];
}

async function outcomesAre(store: Store, ids: readonly string[], build: Build): Promise<Rule> {
  const views = await Promise.all(ids.map((id) => store.read.run(tenant, id)));
  const expected = JSON.stringify(Array.from({ length: stepsOf }, () => build));
  return rule(
    `every step of a run of ${build} was executed by ${build}`,
    views,
    (view) => JSON.stringify(view?.outcome) === expected,
  );
}

const rule = <T>(text: string, of: readonly T[], holds: (one: T) => boolean): Rule => ({
  rule: text,
  checked: of.length,
  broken: of.filter((one) => !holds(one)).map((one) => `${text}: ${describe(one)}`),
});

const describe = (one: unknown): string =>
  (
    JSON.stringify(one, (_key, value: unknown) => (typeof value === "bigint" ? `${value}` : value)) ?? String(one)
  ).slice(0, 300);
