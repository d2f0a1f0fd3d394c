import { assertBuild } from "../model/build.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import type { AuditInfo, PinnedRun } from "../store/contract/store.ts";
import { type OperatorDeps, operatorAction, underManualLease } from "./manual-lease.ts";

/** Which runs move to which build, and how long to wait for its replays. */
export interface MoveRequest extends AuditInfo {
  /** The build that the runs leave. */
  readonly from: string;
  /** The build that drives them from now on. */
  readonly to: string;
  /** Only this run. Default: all live runs of `from`, a page at a time. */
  readonly run?: string;
  /** Continues after this journal: `above` of the previous response. */
  readonly above?: number;
  /** Runs of one call; default and maximum 100. */
  readonly limit?: number;
  /** How long to wait for replays. Default 10 s, at most a minute. */
  readonly withinMs?: number;
}

/**
 * What has become of a run.
 *
 *   moved     the new build has replayed its journal, and drives it
 *   refused   the code of the new build differs from the journal, as `reason` shows: the run stays
 *   held      a process drives it now: wait, or preempt it
 *   waiting   no process of the new build has replayed it yet; it waits for one
 */
export interface MoveResult {
  readonly run: string;
  /** What has become of it. */
  readonly result: "moved" | "refused" | "held" | "waiting";
  readonly reason?: string;
}

/** `above`: where the next call continues; absent: these were the last. */
export interface MovePage {
  readonly runs: readonly MoveResult[];
  /** Where the next call continues; absent: these were the last. */
  readonly above?: number;
}

export const maxMoves = 100;
export const maxMoveMs = 60_000;
const defaultMoveMs = 10_000;
const pollMs = 100;

/**
 * Moves live runs to another build. Each is handed to a process of that build, on trial: it replays the journal and
 * starts nothing before. If its code differs, it returns the run, with the difference.
 */
export async function moveRuns(deps: OperatorDeps, request: MoveRequest): Promise<MovePage> {
  const { store, tenant, clock } = deps;
  const { from, to, limit = maxMoves, withinMs = defaultMoveMs } = request;
  assertBuild("move: from", from);
  assertBuild("move: to", to);
  if (from === to) throw new TapeError("TAPE_BAD_INPUT", `the runs are of build ${to} already`, { field: "to" });
  const [target] = await store.read.builds(tenant, { build: to });
  if (target === undefined) throw notFound("build", to);
  const page = await runsOf(deps, request, Math.min(limit, maxMoves));
  const until = clock.mono() + Math.min(withinMs, maxMoveMs);
  const moves = page.runs.map(async (run): Promise<MoveResult> => {
    if (!target.workflows.includes(run.workflow)) {
      return { run: run.id, result: "refused", reason: `build ${to} does not pin the workflow ${run.workflow}` };
    }
    const head = await putOnTrial(deps, request, run.id);
    return typeof head === "number" ? verdictOn(deps, run.id, head, until) : head;
  });
  const runs = await Promise.all(moves);
  return page.above === undefined ? { runs } : { runs, above: page.above };
}

async function runsOf(
  { store, tenant }: OperatorDeps,
  { from, run, above }: MoveRequest,
  limit: number,
): Promise<{ readonly runs: readonly PinnedRun[]; readonly above?: number }> {
  if (run === undefined) {
    const page = await store.read.buildRuns(tenant, from, { limit, ...(above !== undefined && { above }) });
    return page.more === true ? { runs: page, above: page.at(-1)!.journal } : { runs: page };
  }
  const view = await store.read.run(tenant, run);
  if (view === undefined) throw notFound("run", run);
  const { build } = view.lease;
  if (build === from) return { runs: [view] };
  const message = `run ${run} ${build === undefined ? "is pinned to no build" : `is pinned to build ${build}, not to ${from}`}`;
  throw new TapeError("TAPE_ILLEGAL_TRANSITION", message, { run, build });
}

/** Hands the run to the new build. Returns the number of the last record before the replay. */
async function putOnTrial(deps: OperatorDeps, request: MoveRequest, run: string): Promise<number | MoveResult> {
  const { store, tenant } = deps;
  const { from, to, by, reason, via } = request;
  const audit = { by, reason, ...(via && { via }) };
  let head = 0;
  try {
    const manual = { reactor: "recovery", condition: "free_or_expired" } as const;
    await underManualLease(deps, { run }, audit, manual, async (term) => {
      const build = (await store.read.lease(tenant, { run }))?.build;
      if (build !== from) throw new TapeError("TAPE_ILLEGAL_TRANSITION", `it is of build ${build} now`, { run, build });
      head = term.head + 3;
      return [
        operatorAction(audit, "move", { from, to }),
        { kind: "run.pinned", data: { build: to, from, trial: true } },
      ];
    });
    return head;
  } catch (error) {
    if (isTapeError(error, "TAPE_LEASE_HELD")) return { run, result: "held", reason: error.message };
    if (isTapeError(error, "TAPE_RUN_ENDED") || isTapeError(error, "TAPE_ILLEGAL_TRANSITION"))
      return { run, result: "refused", reason: error.message };
    throw error;
  }
}

/** The verdict of the replay, as the journal has it. */
async function verdictOn(deps: OperatorDeps, run: string, head: number, until: number): Promise<MoveResult> {
  const { store, tenant, clock } = deps;
  for (let from = head + 1; ; ) {
    const records = await store.read.journal(tenant, { run }, { from });
    for (const record of records) {
      from = record.seq + 1;
      if (record.kind !== "run.pinned") continue;
      const { refused } = record.data;
      return refused === undefined ? { run, result: "moved" } : { run, result: "refused", reason: refused };
    }
    if (clock.mono() >= until) return { run, result: "waiting", reason: "no process of the build has replayed it yet" };
    await clock.sleep(pollMs);
  }
}
