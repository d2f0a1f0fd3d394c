import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import type { Identity } from "../lease/identity.ts";
import { isTapeError } from "../model/errors.ts";
import type { ReactorStats } from "../reactor/runner.ts";
import type { Store } from "../store/contract/store.ts";
import type { SingletonView } from "./singleton/singleton.ts";
import type { Worker } from "./worker.ts";

/** The content of a process report: the stats of its reactors, the singletons that it runs or stands by for. */
export interface ProcessActivity {
  readonly stats: readonly Readonly<Record<string, ReactorStats>>[];
  readonly singletons: readonly SingletonView[];
  /** Workflows that its runners can drive; absent: it wakes handlers, and does not know theirs. */
  readonly workflows?: readonly string[];
  /** Effects whose definitions it has; absent likewise. */
  readonly effects?: readonly string[];
  /** Queues whose runs it admits; absent likewise. */
  readonly queues?: readonly string[];
  /** JSON Schemas of the values that its gates accept, by name. */
  readonly gates?: Readonly<Record<string, unknown>>;
  /** The builds of its runners that pin workflows; a process has one. */
  readonly build?: string | undefined;
  /** Runs driven now. */
  readonly driving: number;
}

export interface ProcessReporterDeps {
  readonly store: Store;
  readonly tenant: string;
  readonly identity: Identity;
  readonly clock: Clock;
  readonly log: Log;
}

/** Four reports fit into the minute after which a silent process is no longer listed. */
const reportEveryMs = 15_000;
/** A program that ends within a second is no replica, and should not pay for a report. */
const firstReportMs = 1_000;
const rateMs = 60_000;
/** Bound for removing the report at the end. The report would expire anyway. */
const removeTimeoutMs = 2_000;

type Sums = Readonly<Record<string, ReactorStats>>;
interface Sample {
  readonly at: number;
  readonly sums: Sums;
}

/**
 * Reports this process to the store for operators. Best effort: nothing depends on it, and failures are only logged at
 * debug level. Its timer does not keep the process alive.
 *
 *   silent ──begin──▶ reporting ──end, or an error that no retry can help──▶ ended
 *     └─────────────────end────────────────────────────────────────────────────▲
 */
export class ProcessReporter {
  readonly #deps: ProcessReporterDeps;
  readonly #activity: () => ProcessActivity;
  readonly #samples: Sample[] = [];
  #state: "silent" | "reporting" | "ended" = "silent";
  #startedAt = 0;
  /** The store may have a report of this process. */
  #listed = false;
  #reporting: Promise<void> = Promise.resolve();
  #cancel = () => {};
  #isSoon = false;

  constructor(deps: ProcessReporterDeps, activity: () => ProcessActivity) {
    this.#deps = deps;
    this.#activity = activity;
  }

  /** Starts reporting; a second call does nothing. */
  begin(): void {
    if (this.#state !== "silent") return;
    this.#transition("reporting");
    const { clock } = this.#deps;
    this.#startedAt = clock.wall();
    this.#samples.push({ at: clock.mono(), sums: {} });
    this.#reportIn(firstReportMs);
  }

  /** What this process does has changed: others learn of it within a second, not at the next report. */
  soon(): void {
    if (this.#state !== "reporting" || this.#isSoon) return;
    this.#isSoon = true;
    this.#cancel();
    this.#reportIn(firstReportMs);
  }

  /** Stops reporting and removes the report, within a bound. */
  async end(): Promise<void> {
    this.#transition("ended");
    this.#cancel();
    const removed = new AbortController();
    await Promise.race([this.#remove(), this.#deps.clock.sleep(removeTimeoutMs, removed.signal)]);
    removed.abort();
  }

  #transition(state: "reporting" | "ended"): void {
    this.#state = state;
  }

  #reportIn(ms: number): void {
    this.#cancel = this.#deps.clock.after(ms, () => {
      this.#isSoon = false;
      this.#reporting = this.#report().then(() => {
        // A report that is wanted soon has its timer already: a second one would report beside it forever.
        if (this.#state === "reporting" && !this.#isSoon) this.#reportIn(reportEveryMs);
      });
    });
  }

  async #report(): Promise<void> {
    const { store, tenant, identity, log } = this.#deps;
    const { stats, singletons, driving, workflows, effects, queues, gates = {}, build } = this.#activity();
    const reactors = this.#rated(summed(stats));
    if (singletons.length + Object.keys(reactors).length === 0) return this.#remove();
    const body = {
      startedAt: this.#startedAt,
      driving,
      reactors,
      singletons: singletons.map(reportOf),
      ...(workflows && ifShort({ workflows })),
      ...(effects && ifShort({ effects })),
      ...(queues && ifShort({ queues })),
      ...(Object.keys(gates).length > 0 && { gates }),
      ...(build !== undefined && { build }),
    };
    this.#listed = true;
    try {
      await store.intake.reportProcess(tenant, { owner: identity.owner, label: identity.label, body });
    } catch (error) {
      if (isTapeError(error) && error.retry === "no") this.#transition("ended");
      log("debug", "process.report_failed", { ...errorFields(error) });
    }
  }

  async #remove(): Promise<void> {
    const { store, tenant, identity } = this.#deps;
    if (this.#state === "ended") await this.#reporting;
    if (!this.#listed) return;
    this.#listed = false;
    await store.intake.removeProcess(tenant, identity.owner).catch(() => {}); // it expires within a minute anyway
  }

  /** Adds the counts of the last minute, or since the start where that is shorter. */
  #rated(sums: Sums): Readonly<Record<string, object>> {
    const at = this.#deps.clock.mono();
    while (this.#samples.length > 1 && this.#samples[1]!.at <= at - rateMs) this.#samples.shift();
    const before = this.#samples[0]!.sums;
    this.#samples.push({ at, sums });
    return Object.fromEntries(
      Object.entries(sums).map(([name, { polls: _polls, ...now }]) => {
        const then = before[name];
        const perMinute = now.done - (then?.done ?? 0);
        const errorsPerMinute = errorsOf(now) - (then === undefined ? 0 : errorsOf(then));
        return [name, { ...now, perMinute, errorsPerMinute }];
      }),
    );
  }
}

const errorsOf = ({ failed, faults }: Pick<ReactorStats, "failed" | "faults">): number => failed + faults;

/** What these workers do, together. A process that wakes handlers does not list what it has, because they have more. */
export function activityOf(
  workers: readonly Worker[],
  singletons: readonly SingletonView[],
  { drivesElsewhere, callsElsewhere }: { readonly drivesElsewhere: boolean; readonly callsElsewhere: boolean },
): ProcessActivity {
  const all = (what: "workflows" | "effects" | "queues"): string[] => [
    ...new Set(workers.flatMap((worker) => worker[what])),
  ];
  return {
    stats: workers.map(({ stats }) => stats),
    singletons,
    ...(!drivesElsewhere && { workflows: all("workflows"), queues: all("queues") }),
    ...(!callsElsewhere && { effects: all("effects") }),
    gates: Object.fromEntries(workers.flatMap(({ gates }) => Object.entries(gates))),
    build: workers.map(({ build }) => build).find((build) => build !== undefined),
    driving: workers.reduce((sum, { driving }) => sum + driving, 0),
  };
}

/** A process may drive the workflows of several runners, each with its own reactors. */
export function summed(all: readonly Readonly<Record<string, ReactorStats>>[]): Sums {
  const sums: Record<string, Sums[string]> = {};
  for (const [name, stats] of all.flatMap((byName) => Object.entries(byName))) {
    const sum = sums[name] ?? zeroSums;
    sums[name] = {
      polls: sum.polls + stats.polls,
      found: sum.found + stats.found,
      done: sum.done + stats.done,
      failed: sum.failed + stats.failed,
      faults: sum.faults + stats.faults,
      busy: sum.busy + stats.busy,
      unserved: sum.unserved + stats.unserved,
      lagMs: Math.max(sum.lagMs, stats.lagMs),
    };
  }
  return sums;
}

const zeroSums: Sums[string] = { polls: 0, found: 0, done: 0, failed: 0, faults: 0, busy: 0, unserved: 0, lagMs: 0 };

/** Reports are short: a list of names above 2,000 characters is left out. */
const ifShort = <T extends Readonly<Record<string, readonly string[]>>>(names: T): Partial<T> =>
  Object.values(names).flat().join().length <= 2_000 ? names : {};

const reportOf = ({ name, state, token }: SingletonView) => ({
  name,
  state,
  ...(token === undefined ? {} : { token: String(token) }),
});
