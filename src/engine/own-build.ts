import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { type BuildClaim, leavesRun, pinOf } from "../model/build.ts";
import { TapeError } from "../model/errors.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { RunSpec, Store } from "../store/contract/store.ts";

/** How soon a process learns that another build is current. */
const reportEveryMs = 5_000;

export type StartResults = Awaited<ReturnType<Store["intake"]["createRuns"]>>;
/** `here`: this process drives them at once, if it has room. */
type Start = (specs: readonly RunSpec[], here: boolean) => Promise<StartResults>;

export interface OwnBuildDeps {
  readonly store: Store;
  readonly tenant: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** The claim of a process that pins workflows; undefined: it pins none, and pays nothing for builds. */
export function buildClaimOf({ build, workflows }: Runner): BuildClaim | undefined {
  const pinned = [...workflows.values()].filter((workflow) => workflow.pinned === true).map(({ name }) => name);
  if (pinned.length === 0) return undefined;
  if (build !== undefined) return { build, pinned };
  const message = `workflow ${pinned[0]} is pinned, and its runner has no build: pass createRunner({ build }), or set TAPE_BUILD`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "build", workflow: pinned[0] });
}

/** The build of a process that pins workflows. Reports it, and learns whose new runs to leave to others. */
export class OwnBuild {
  readonly #deps: OwnBuildDeps;
  #claim: BuildClaim;
  #reported = false;
  #nextAt = Number.NEGATIVE_INFINITY;
  #reporting: Promise<void> | undefined;

  constructor(deps: OwnBuildDeps, claim: BuildClaim) {
    this.#deps = deps;
    // A build that is not listed must pin nothing: its runs could not be found if it vanishes.
    this.#claim = { ...claim, leaves: claim.pinned };
  }

  /** As of the last report. */
  get last(): BuildClaim {
    return this.#claim;
  }

  /** As of a report within the last seconds, if the store answers. */
  async claim(): Promise<BuildClaim> {
    const { clock } = this.#deps;
    if (clock.mono() < this.#nextAt) return this.#claim;
    this.#reporting ??= this.#report().finally(() => {
      this.#reporting = undefined;
    });
    await this.#reporting;
    return this.#claim;
  }

  /** Starts runs: new runs of some workflows are left to the current build, others of pinned ones belong to this one. */
  async start(specs: readonly RunSpec[], start: Start): Promise<StartResults> {
    const claim = await this.claim();
    const isLeft = ({ workflow }: RunSpec): boolean => leavesRun(null, workflow, claim);
    const own = specs.filter((spec) => !isLeft(spec));
    const pinned = own.map((spec) => ({ ...spec, ...defined({ build: pinOf(null, spec.workflow, claim) }) }));
    const started = own.length === 0 ? [] : await start(pinned, true);
    const left = own.length === specs.length ? [] : await start(specs.filter(isLeft), false);
    return specs.map((spec) => (isLeft(spec) ? left : started).shift()!);
  }

  async #report(): Promise<void> {
    const { store, tenant, clock, log } = this.#deps;
    const { build, pinned } = this.#claim;
    try {
      const { leaves } = await store.intake.reportBuild(tenant, build, pinned);
      this.#reported = true;
      this.#claim = { build, pinned, ...(leaves.length > 0 && { leaves }) };
    } catch (error) {
      const next = this.#reported
        ? {}
        : { next: "Until it is reported, this process takes no new runs of pinned workflows." };
      log("warn", "build.report_failed", { build, ...errorFields(error), ...next });
    }
    this.#nextAt = clock.mono() + reportEveryMs;
  }
}
