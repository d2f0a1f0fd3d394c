import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import type { Identity } from "../lease/identity.ts";
import { isTapeError } from "../model/errors.ts";
import type { ReactorStats } from "../reactor/loop.ts";
import type { Store } from "../store/contract/store.ts";
import type { SingletonView } from "./singleton/singleton.ts";

/** What a process has to tell: what its reactors have done, which singletons it runs or stands by for. */
export interface ProcessActivity {
  readonly stats: readonly Readonly<Record<string, ReactorStats>>[];
  readonly singletons: readonly SingletonView[];
  /** What its runners can drive. */
  readonly workflows: readonly string[];
  /** Effects whose definitions it has. */
  readonly effects: readonly string[];
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

/** Four of them fit into the minute after which a process is listed no more. */
const reportEveryMs = 15_000;
/** A program that is over within a second is nobody's replica, and need not pay for saying so. */
const firstReportMs = 1_000;
const rateMs = 60_000;
/** Nobody waits longer than this for a row that would be forgotten by itself. */
const removeTimeoutMs = 2_000;

type Sums = Readonly<Record<string, Omit<ReactorStats, "polls">>>;
interface Sample {
  readonly at: number;
  readonly sums: Sums;
}

/**
 * Says what this process is at, for people who look: nothing depends on it, and whatever goes wrong with it is nobody's
 * error. Its timer keeps no process alive.
 *
 *   silent ──begin──▶ telling ──end, or a refusal that no repetition helps──▶ over
 *     └────────────────end────────────────────────────────────────────────────▲
 */
export class ProcessReporter {
  readonly #deps: ProcessReporterDeps;
  readonly #look: () => ProcessActivity;
  readonly #samples: Sample[] = [];
  #state: "silent" | "telling" | "over" = "silent";
  #startedAt = 0;
  /** There may be a row of ours. */
  #listed = false;
  #reporting: Promise<void> = Promise.resolve();
  #cancel = () => {};

  constructor(deps: ProcessReporterDeps, look: () => ProcessActivity) {
    this.#deps = deps;
    this.#look = look;
  }

  /** There is something to tell; it may be said again. */
  begin(): void {
    if (this.#state !== "silent") return;
    this.#transition("telling");
    const { clock } = this.#deps;
    this.#startedAt = clock.wall();
    this.#samples.push({ at: clock.mono(), sums: {} });
    this.#reportIn(firstReportMs);
  }

  /** The last word, within a bound. */
  async end(): Promise<void> {
    this.#transition("over");
    this.#cancel();
    const over = new AbortController();
    await Promise.race([this.#leave(), this.#deps.clock.sleep(removeTimeoutMs, over.signal)]);
    over.abort();
  }

  #transition(state: "telling" | "over"): void {
    this.#state = state;
  }

  #reportIn(ms: number): void {
    this.#cancel = this.#deps.clock.after(ms, () => {
      this.#reporting = this.#report().then(() => {
        if (this.#state === "telling") this.#reportIn(reportEveryMs);
      });
    });
  }

  async #report(): Promise<void> {
    const { store, tenant, identity, log } = this.#deps;
    const { stats, singletons, driving, workflows, effects } = this.#look();
    const reactors = this.#rated(summed(stats));
    if (singletons.length + Object.keys(reactors).length === 0) return this.#leave();
    const body = {
      startedAt: this.#startedAt,
      driving,
      reactors,
      singletons: singletons.map(shown),
      ...said({ workflows }),
      ...said({ effects }),
    };
    this.#listed = true;
    try {
      await store.intake.reportProcess(tenant, { owner: identity.owner, label: identity.label, body });
    } catch (error) {
      if (isTapeError(error) && error.retry === "no") this.#transition("over");
      log("debug", "process.report_failed", { ...errorFields(error) });
    }
  }

  async #leave(): Promise<void> {
    const { store, tenant, identity } = this.#deps;
    if (this.#state === "over") await this.#reporting;
    if (!this.#listed) return;
    this.#listed = false;
    await store.intake.removeProcess(tenant, identity.owner).catch(() => {}); // forgotten in a minute all the same
  }

  /** With how much of it was in the last minute, or since the beginning where that is less. */
  #rated(sums: Sums): Readonly<Record<string, object>> {
    const at = this.#deps.clock.mono();
    while (this.#samples.length > 1 && this.#samples[1]!.at <= at - rateMs) this.#samples.shift();
    const before = this.#samples[0]!.sums;
    this.#samples.push({ at, sums });
    return Object.fromEntries(
      Object.entries(sums).map(([name, now]) => {
        const then = before[name];
        const perMinute = now.done - (then?.done ?? 0);
        const errorsPerMinute = errorsOf(now) - (then === undefined ? 0 : errorsOf(then));
        return [name, { ...now, perMinute, errorsPerMinute }];
      }),
    );
  }
}

const errorsOf = ({ failed, faults }: Sums[string]): number => failed + faults;

/** A process may drive the workflows of several runners, each with reactors beside it. */
function summed(all: readonly Readonly<Record<string, ReactorStats>>[]): Sums {
  const sums: Record<string, Sums[string]> = {};
  for (const [name, { polls, ...one }] of all.flatMap((tallies) => Object.entries(tallies))) {
    const { unserved, ...more } = sums[name] ?? nothing;
    sums[name] = {
      found: more.found + one.found,
      done: more.done + one.done,
      failed: more.failed + one.failed,
      faults: more.faults + one.faults,
      busy: more.busy + one.busy,
      unserved: unserved + one.unserved,
      lagMs: Math.max(more.lagMs, one.lagMs),
    };
  }
  return sums;
}

const nothing: Sums[string] = { found: 0, done: 0, failed: 0, faults: 0, busy: 0, unserved: 0, lagMs: 0 };

/** Reports are short: a process with more, or longer, names says nothing of them. */
const said = <T extends Readonly<Record<string, readonly string[]>>>(names: T): Partial<T> =>
  Object.values(names).flat().join().length <= 2_000 ? names : {};

const shown = ({ name, state, token }: SingletonView) => ({
  name,
  state,
  ...(token === undefined ? {} : { token: String(token) }),
});
