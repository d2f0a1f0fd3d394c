import { TapeError } from "../../../model/errors.ts";
import { isHashed } from "../../../model/payloads.ts";
import { encodeBody } from "../../../model/projection.ts";
import type { RecordData } from "../../../model/records.ts";
import { debouncePos, debounceScope, uniquePos, uniqueScope } from "../../../model/slot.ts";
import type { CreateResult } from "../../contract/store.ts";
import { type Plan, type PlanContext, query, queryRow } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { sendNote, unknownQueue } from "./append.ts";

type CreatedRun = RecordData<"run.created">;

/**
 * Before a run is created that waits in a queue or has a key of its own: checks the queue and holds the keys. Nothing
 * else has been written yet. Returns another run if that one takes the start.
 */
export function* prepareStart(
  context: PlanContext,
  tenant: string,
  journal: number,
  data: CreatedRun,
): Plan<CreateResult | undefined> {
  const { queue, unique, debounce, workflow } = data;
  const row = queue === undefined ? undefined : yield* queryRow("queue.find", { tenant, name: queue.name });
  if (queue !== undefined && row === undefined) throw unknownQueue(queue.name);
  if (unique !== undefined) {
    if (unique.onConflict === "cancel") assertReplaces(data, row);
    const scope = uniqueScope(workflow);
    const owner = yield* hold({ tenant, scope, businessKey: unique.key, run: journal, pos: uniquePos });
    if (owner !== undefined) return yield* uniqueConflict(context, tenant, journal, data, owner);
  }
  if (debounce === undefined) return undefined;
  const scope = debounceScope(workflow);
  for (;;) {
    const owner = yield* hold({ tenant, scope, businessKey: debounce.key, run: journal, pos: debouncePos });
    if (owner === undefined) return undefined;
    const joined = yield* moveStart(context, tenant, data, owner);
    if (joined !== undefined) return joined;
  }
}

type Claim = Readonly<Record<"tenant" | "scope" | "businessKey", string> & Record<"run" | "pos", number>>;

/** The run that has the key; undefined: this one has it now. */
function* hold(claim: Claim): Plan<RowOf<"business_key.find"> | undefined> {
  for (;;) {
    if ((yield* query("business_key.hold", claim)).count > 0) return undefined;
    const { tenant, scope, businessKey } = claim;
    const owner = yield* queryRow("business_key.find", { tenant, scope, businessKey });
    if (owner !== undefined) return owner; // otherwise it was dropped between the two statements
  }
}

/** Only in a queue that admits the next run of the key after the previous one has ended, with all its compensations. */
function assertReplaces({ queue, unique }: CreatedRun, row: RowOf<"queue.find"> | undefined): void {
  // Behind a keyed hash the process that made it has compared the keys.
  const isSame = queue?.key === unique?.key || isHashed(unique?.key ?? "");
  const fits = row?.counts === "started" && Number(row.key_concurrency) === 1 && isSame;
  if (fits) return;
  const message = `onConflict "cancel" needs a queue with counts: "started" and perKey: { concurrency: 1 }, and its key as the unique key`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "unique.onConflict" });
}

function* uniqueConflict(
  context: PlanContext,
  tenant: string,
  journal: number,
  data: CreatedRun,
  owner: RowOf<"business_key.find">,
): Plan<CreateResult | undefined> {
  const { unique, workflow, id } = data;
  const run = owner.run_id;
  if (run === id) return undefined; // the same start, repeated: the id decides
  if (unique!.onConflict === "reject") {
    const message = `run ${run} of ${workflow} has the unique key ${unique!.key}`;
    throw new TapeError("TAPE_RUN_LIVE", message, { run, workflow, key: unique!.key });
  }
  if (unique!.onConflict === "join") return { journal: Number(owner.run), fresh: false, run };
  const cancel: RecordData<"cancel.requested"> = { reason: `replaced by run ${id}` };
  const body = encodeBody(cancel);
  yield* sendNote(context, { tenant, journal: Number(owner.run) }, "cancel.requested", body, false);
  const claim = { tenant, scope: uniqueScope(workflow), businessKey: unique!.key };
  yield* query("business_key.replace", { ...claim, run: journal, pos: uniquePos });
  return undefined;
}

/** A further start of a debounced run. undefined: it has started meanwhile. */
function* moveStart(
  context: PlanContext,
  tenant: string,
  data: CreatedRun,
  owner: RowOf<"business_key.find">,
): Plan<CreateResult | undefined> {
  const { debounce, input, inputHash, checked, id } = data;
  const journal = Number(owner.run);
  const found = { journal, fresh: false, run: owner.run_id };
  if (owner.run_id === id) return found;
  const { waitMs, maxWaitMs = null } = debounce!;
  const move = { run: journal, delayMs: waitMs, maxDelayMs: maxWaitMs };
  // The timer first, as when it fires: two transactions that lock timer and lease in two orders wait for each other.
  if ((yield* query("timer.move", move)).count === 0) return undefined;
  const moved: RecordData<"start.moved"> = { input, inputHash, waitMs, ...(checked && { checked }) };
  const n = (yield* sendNote(context, { tenant, journal }, "start.moved", encodeBody(moved), true))!;
  if (n >= context.limits.startMoves) yield* query("timer.move", { ...move, delayMs: 0 });
  return found;
}

/** Returns the keys that a start holds, if the run was not created after all. */
export function* abandonStart(journal: number, { unique, debounce }: CreatedRun): Plan<void> {
  if (unique !== undefined) yield* query("business_key.drop", { run: journal, pos: uniquePos });
  if (debounce !== undefined) yield* query("business_key.drop", { run: journal, pos: debouncePos });
}
