import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { type Random, seededRandom } from "../../src/base/random.ts";
import { Tape } from "../../src/host/tape.ts";
import { isTapeError } from "../../src/model/errors.ts";
import type { EffectRow } from "../../src/model/rows.ts";
import type { RunView } from "../../src/store/contract.ts";
import { Faults, type Hit, wordsOf } from "./faults.ts";
import { type Evidence, judge, type Started } from "./judge.ts";
import { buildProgram, type Flow, yes } from "./program.ts";
import { Replica } from "./replicas.ts";
import { Outages, ServerReplica } from "./servers.ts";
import { World } from "./world.ts";

export interface ChaosOptions {
  /** The store's URL. */
  readonly url: string;
  /** So many servers stand between the workers and the store. Default 0: each worker opens the store itself. */
  readonly servers?: number;
  readonly replicas: number;
  readonly ttlMs: number;
  /** Live runs at a time. Default 60. */
  readonly mostLive?: number;
  /** How long faults happen. */
  readonly ms: number;
  readonly seed: string;
  /** Ledger and logs are left here. */
  readonly folder: string;
}

export interface ChaosReport {
  /** Rules that were broken, and what makes the round worthless: faults that hit nothing, states that nobody reached. */
  readonly violations: readonly string[];
  readonly hits: readonly Hit[];
  /** What happened, for people. */
  readonly lines: readonly string[];
}

/** Live runs at a time: enough that every process always has some, few enough that all end soon after the faults. */
const mostLive = 60;
/** TTL, scans and back-offs are seconds; suspects are driven one at a time; a busy machine may need its while. */
const settleMs = 90_000;

/** All five reactors in several processes on one store, under kill -9 and SIGSTOP; judged by the world's own ledger. */
export async function chaosReactors(options: ChaosOptions): Promise<ChaosReport> {
  const { url, ttlMs, folder, seed, ms } = options;
  const world = new World(join(folder, "ledger.jsonl"), seed);
  const address = await world.listen();
  const { flows, runner } = buildProgram({ world: address, worker: "client" });
  const servers = Array.from({ length: options.servers ?? 0 }, (_, k) => new ServerReplica(k + 1, url, folder));
  await Promise.all(servers.map((server) => server.start()));
  const addresses = servers.map((server) => server.url);
  const client =
    servers.length === 0
      ? await Tape.open({ store: url, runner, work: false })
      : await Tape.connect(addresses, { runner, work: false });
  const replicas = Array.from({ length: options.replicas }, (_, k) => {
    return new Replica(k + 1, { url, servers: addresses, world: address, ttlMs }, folder);
  });
  const outages = new Outages(servers, url, seed);
  try {
    await Promise.all(replicas.map((replica) => replica.start()));
    const { store, tenant } = client;
    const faults = new Faults({ replicas, world, store, tenant, ttlMs, seed });
    const load = new Load(client, flows, seededRandom(`${seed} load`), options.mostLive ?? mostLive);
    const calm = new AbortController();
    const loading = load.go(calm.signal);
    const raging = servers.length === 0 ? undefined : outages.rage(calm.signal);
    await faults.rage(ms);
    calm.abort();
    await loading;
    await raging;
    const calmed = systemClock.mono();
    await until(async () => (await load.live()) === 0, settleMs);
    const settledMs = Math.round(systemClock.mono() - calmed);
    const evidence: Evidence = {
      started: load.started,
      runs: await allRuns(client),
      effects: await allEffects(client),
      deeds: world.deeds,
    };
    writeFileSync(join(folder, "started.json"), JSON.stringify(load.started));
    const { hits } = faults;
    const violations = [
      ...[...replicas, ...servers].flatMap(({ collapses }) => collapses),
      ...vacuous(evidence, hits, ttlMs),
      ...(servers.length > 0 && outages.servers === 0 ? ["no server was killed: the round proves nothing"] : []),
      ...(servers.length > 0 && outages.connections === 0 ? ["no connection was cut: the round proves nothing"] : []),
      ...(await whyUnsettled(client, evidence)),
      ...judge(evidence),
    ];
    const cut = `servers: ${outages.servers} killed; ${outages.connections} database connections cut`;
    const lines = [
      ...wordsOf(hits, ttlMs),
      ...(servers.length > 0 ? [cut] : []),
      ...summary(evidence, world, settledMs),
    ];
    return { violations, hits, lines };
  } finally {
    for (const replica of replicas) replica.kill();
    for (const server of servers) server.kill();
    await client.close();
    world.close();
  }
}

/** Starts runs of every flow while the faults last, and answers the gates that ask. */
class Load {
  readonly started: Started[] = [];
  readonly #client: Tape;
  readonly #flows: Readonly<Record<string, Flow>>;
  readonly #random: Random;
  readonly #most: number;
  readonly #signals = new Set<Promise<void>>();

  constructor(client: Tape, flows: Readonly<Record<string, Flow>>, random: Random, most: number) {
    this.#most = most;
    this.#client = client;
    this.#flows = flows;
    this.#random = random;
  }

  async live(): Promise<number> {
    const status = ["RUNNABLE", "RUNNING", "WAITING", "ENDING", "COMPENSATING"] as const;
    return (await this.#client.runs.list({ status, limit: 500 })).length;
  }

  async go(signal: AbortSignal): Promise<void> {
    for (let round = 1; !signal.aborted; round++) {
      if ((await persistently(() => this.live())) < this.#most) {
        for (const flow of Object.keys(this.#flows)) await this.#start(flow, `${flow}-${round}`);
      }
      await systemClock.sleep(200, signal);
    }
    await Promise.all(this.#signals);
  }

  async #start(flow: string, id: string): Promise<void> {
    const ms = 100 + this.#random.int(1_500);
    const said = flow === "asked" ? `yes to ${id}` : undefined;
    await persistently(() => this.#client.start(this.#flows[flow]!, { run: id, ms }, { id }));
    this.started.push({ id, flow, ms, ...(said === undefined ? {} : { said }) });
    if (said !== undefined) this.#answer(id, said);
  }

  /** Before the gate opens, while it stands open, and sometimes twice: one answer counts. */
  #answer(id: string, said: string): void {
    const times = 1 + this.#random.int(2);
    const answering = async (): Promise<void> => {
      for (let k = 0; k < times; k++) {
        await systemClock.sleep(this.#random.int(600));
        await persistently(() => this.#client.signal(id, yes, said, { key: id })).catch((error: unknown) => {
          // The second may find the run gone: the first was enough.
          if (k === 0 || !isTapeError(error, "TAPE_RUN_ENDED")) throw error;
        });
      }
    };
    const all = answering().finally(() => this.#signals.delete(all));
    this.#signals.add(all);
  }
}

/** A store that processes are killed on is busy at times; starts and signals can be repeated. */
async function persistently<T>(ask: () => Promise<T>): Promise<T> {
  for (let left = 100; ; left--) {
    try {
      return await ask();
    } catch (error) {
      const again = isTapeError(error) && (error.retry !== "no" || error.code === "TAPE_STORE_UNREACHABLE");
      if (!again || left === 0) throw error;
      await systemClock.sleep(50);
    }
  }
}

async function until(look: () => Promise<boolean>, ms: number): Promise<void> {
  const end = systemClock.mono() + ms;
  while (!(await look()) && systemClock.mono() < end) await systemClock.sleep(100);
}

async function allRuns({ runs }: Tape): Promise<RunView[]> {
  const all: RunView[] = [];
  for (;;) {
    const before = all.at(-1)?.journal;
    const page = await runs.list({ limit: 500, ...(before === undefined ? {} : { before }) });
    if (page.length === 0) return all;
    all.push(...page);
  }
}

/** By run, because lists are limited. */
async function allEffects(client: Tape): Promise<EffectRow[]> {
  const all: EffectRow[] = [];
  for (const { id } of await allRuns(client))
    all.push(...(await client.store.read.effects(client.tenant, { run: id })));
  return all;
}

/** What holds up each run that has not ended: the first question of whoever reads the report. */
async function whyUnsettled(client: Tape, { runs }: Evidence): Promise<string[]> {
  const lines: string[] = [];
  for (const run of runs.filter(({ endedAt }) => endedAt === null).slice(0, 5)) {
    const last = (await Array.fromAsync(client.journal(run.id))).at(-1);
    const { state, label, wants } = run.lease;
    lines.push(
      `${run.id}: lease ${state} of ${label}, wants ${wants}, notes ${run.notes}, last ${JSON.stringify(last, bigintText)}`,
    );
    for (const timer of await client.store.read.timers(client.tenant, { run: run.id })) {
      lines.push(`${run.id}: timer ${timer.purpose} at ${timer.pos} is ${timer.status}`);
    }
  }
  return lines;
}

const bigintText = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

/** A round in which nothing was hit, or in which nobody got into trouble, proves nothing. */
function vacuous({ started, effects }: Evidence, hits: readonly Hit[], ttlMs: number): string[] {
  const bitten: Record<string, boolean> = {
    "kill -9": hits.some(({ kind }) => kind === "kill"),
    SIGSTOP: hits.some(({ kind }) => kind === "pause"),
    "a SIGSTOP past the end of a lease": hits.some(({ pausedMs }) => pausedMs > ttlMs),
    "a fault inside an act": hits.some(({ acts }) => acts > 0),
    "a fault on a holder of leases": hits.some(({ leases }) => Object.keys(leases).length > 0),
    "a run of every flow": new Set(started.map(({ flow }) => flow)).size === 8,
    "a doubt that a look settled": effects.some(({ reason }) => reason === "observed" || reason === "ABSENT"),
    "an act that was tried again": effects.some(({ attempt }) => attempt > 1),
    "an obligation that was carried out": effects.some(({ status }) => status === "COMPENSATED"),
    "an obligation that was discharged": effects.some(({ status }) => status === "DISCHARGED"),
  };
  return Object.entries(bitten).flatMap(([what, seen]) => (seen ? [] : [`worthless: there was not ${what}`]));
}

function summary({ started, runs, effects, deeds }: Evidence, world: World, settledMs: number): string[] {
  const tally = <T>(items: readonly T[], by: (item: T) => string): string =>
    [...Map.groupBy(items, by)]
      .map(([name, same]) => `${same.length} ${name}`)
      .toSorted()
      .join(", ");
  const whims = Object.entries(world.played).map(([whim, n]) => `${n} ${whim}`);
  return [
    `runs: ${started.length} started, with children ${runs.length}: ${tally(runs, ({ status }) => status)}; the last ended ${settledMs} ms after the faults`,
    `world: ${deeds.length} deeds (${tally(deeds, ({ name }) => name)}); ${world.stale} requests of fenced-out owners refused`,
    `requests: ${whims.join(", ")}`,
    `acts: ${tally(
      effects.filter(({ role }) => role === "act"),
      ({ reason }) => String(reason),
    )}`,
    `obligations: ${tally(
      effects.filter(({ role }) => role === "inverse"),
      ({ status, reason }) => (status === "DISCHARGED" ? status : `${status} (${reason})`),
    )}`,
  ];
}
