import type { Clock } from "../base/clock.ts";
import type { Duration } from "../base/duration.ts";
import { processesByBuild } from "../engine/served.ts";
import type { MovePage, MoveRequest } from "../operator/builds.ts";
import type { Operator } from "../operator/operator.ts";
import { durationOrThrow } from "../sdk/validate.ts";
import type { AuditInfo, BuildView, PinnedRun, Store } from "../store/contract/store.ts";

/** A build, and how many processes report it now. */
export interface ListedBuild extends BuildView {
  /** How many processes report it. */
  readonly processes: number;
}

/** How often a process that waits for a drained build checks. */
const drainedEveryMs = 1_000;

/** Which runs move where; the wait as a duration. */
export interface BuildMove extends Omit<MoveRequest, "withinMs" | "via"> {
  /** How long to wait for replays. Default 10 s, at most a minute. */
  readonly within?: Duration;
}

/**
 * Builds for operators: which have live runs, which takes new ones, and moves between them.
 *
 * @example
 * await app.builds.current("2026-11-18", { by: "ada", reason: "deployed" });
 */
export class Builds {
  readonly #store: Store;
  readonly #tenant: string;
  readonly #clock: Clock;
  readonly #operator: () => Operator;

  constructor(
    deps: { readonly store: Store; readonly tenant: string; readonly clock: Clock },
    operator: () => Operator,
  ) {
    this.#store = deps.store;
    this.#tenant = deps.tenant;
    this.#clock = deps.clock;
    this.#operator = operator;
  }

  /** The newest first, with the exact number of live runs that are pinned to each. */
  async list(): Promise<ListedBuild[]> {
    const builds = await this.#store.read.builds(this.#tenant);
    const processes = await processesByBuild(this.#store, this.#tenant);
    return builds.map((view) => ({ ...view, processes: processes.get(view.build) ?? 0 }));
  }

  /** A page of the live runs that are pinned to the build, after the journal `above`. */
  runs(build: string, page: { readonly above?: number; readonly limit?: number } = {}): Promise<PinnedRun[]> {
    return this.#store.read.buildRuns(this.#tenant, build, page);
  }

  /** Processes of other builds take no new runs of its pinned workflows from now on. A hint, not a fence. */
  current(build: string, audit: AuditInfo): Promise<BuildView> {
    return this.#store.intake.setCurrentBuild(this.#tenant, build, audit);
  }

  /** Whether no live run is pinned to the build: now, not eventually. */
  isDrained(build: string): Promise<boolean> {
    return this.#store.read.isDrained(this.#tenant, build);
  }

  /** Waits until the build is drained. false: the signal came first, or the time has passed. */
  async drained(
    build: string,
    options: { readonly signal?: AbortSignal; readonly within?: Duration } = {},
  ): Promise<boolean> {
    const { signal, within } = options;
    const ms = within === undefined ? Number.POSITIVE_INFINITY : durationOrThrow("drained", "within", within);
    const until = this.#clock.mono() + ms;
    for (;;) {
      if (await this.isDrained(build)) return true;
      const left = until - this.#clock.mono();
      if (signal?.aborted === true || left <= 0) return false;
      await this.#clock.sleep(Math.min(left, drainedEveryMs), signal);
    }
  }

  /** Moves live runs to another build, whose processes replay them first; refused where the code differs. */
  move({ within, ...request }: BuildMove): Promise<MovePage> {
    return this.#operator().moveRuns({
      ...request,
      ...(within !== undefined && { withinMs: durationOrThrow("move", "within", within) }),
    });
  }
}
