import { fingerprint } from "../../base/canonical.ts";
import { TapeError } from "../../model/errors.ts";
import type { RecordData } from "../../model/records.ts";
import { validate } from "../../sdk/schema.ts";
import { splitsValues } from "../../store/blob-store.ts";
import { encodeRecord } from "../../store/validate/entry.ts";
import { asRecorded } from "../core/as-recorded.ts";
import type { Continuation } from "../core/handle.ts";
import type { LiveOperation } from "../core/operation.ts";
import { asStored } from "../replay/stored-value.ts";
import type { OperationHandle, Operations } from "./operations.ts";
import { unwrap } from "./operations.ts";

/** The name of the operation, in messages and in the record of its refusal. */
export const continueName = "continueAsNew";

/**
 * Ends the code of this generation. The promise never resolves: the next generation starts the function again. It
 * rejects if the run cannot continue, and the refusal is recorded like the result of any other operation. Until it is
 * certain that the run continues, its other branches proceed as before; from then on nothing of them is recorded.
 */
export function continueAsNew(ops: Operations, given: unknown): Promise<never> {
  return ops.operation<never>({
    kinds: ["run.continued", "step.done"],
    name: continueName,
    result: ({ record }) => unwrap<never>(record.data as RecordData<"step.done">),
    begin: (handle) => {
      void proceed(ops, handle, given).catch((error: unknown) => ops.drive.fail(error));
    },
  });
}

async function proceed(ops: Operations, handle: OperationHandle<never>, given: unknown): Promise<void> {
  const { drive } = ops;
  const over = (): boolean => drive.finished || drive.bodyEnded || drive.cancelRequested;
  const refuse = (error: TapeError): void => {
    const stored = asStored(error);
    const data = { pos: handle.pos, name: continueName, error: stored };
    if (!over()) handle.endWithError(stored, { kind: "step.done", data });
  };
  const input = await busy(ops, () => inputOf(ops, given));
  if (input instanceof TapeError) return refuse(input);
  for (;;) {
    while (ops.openWork.length > 0) await Promise.allSettled(ops.openWork);
    const started = drive.children.size;
    const live = await busy(ops, () => liveChildren(ops));
    if (over()) return;
    // Another branch may have requested more meanwhile.
    if (ops.openWork.length > 0 || drive.children.size !== started) continue;
    const refusal = openChildren(live) ?? tooManyNotes(ops);
    if (refusal !== undefined) return refuse(refusal);
    ops.done(handle as unknown as LiveOperation<unknown>); // a cancellation no longer rejects it
    return drive.continueAs(input);
  }
}

/** While something else than an operation is awaited, the drive does not park. */
async function busy<T>({ drive }: Operations, work: () => Promise<T>): Promise<T> {
  drive.activeBodies++;
  try {
    return await work();
  } finally {
    drive.activeBodies--;
    drive.parkIfIdle();
  }
}

async function inputOf({ drive }: Operations, given: unknown): Promise<Continuation | TapeError> {
  const { runner, store } = drive.options;
  const { workflow: name } = drive.history.created;
  const { schema, handlesCalls } = runner.workflows.get(name) ?? {};
  if (handlesCalls === true) {
    const message = `${name} handles a call of an object, which does not continue as new: keep its state in the object`;
    return new TapeError("TAPE_BAD_INPUT", message, { field: "input" });
  }
  const checked = schema === undefined ? { value: given } : await validate(schema, given);
  if (!("value" in checked))
    return new TapeError("TAPE_BAD_INPUT", `${continueName} of ${name}: ${checked.fault}`, { field: "input" });
  const input = asRecorded(drive, "run.continued", "input", asStored(checked.value));
  const pos = drive.context.lanes.firstAfter;
  try {
    const next = { input, inputHash: fingerprint(input), ...(schema !== undefined && { checked: true as const }) };
    const data = { generation: 2, pos, ...next, notesTaken: 0, notes: [] };
    if (!splitsValues(store)) encodeRecord({ kind: "run.continued", data }, store.limits);
    return next;
  } catch (error) {
    if (error instanceof TapeError) return error;
    const message = `${continueName} of ${name}: ${error instanceof Error ? error.message : String(error)}`;
    return new TapeError("TAPE_NOT_ENCODABLE", message, { field: "input" });
  }
}

/** Children whose result the code has are over; the others are looked up. */
async function liveChildren({ drive }: Operations): Promise<readonly string[]> {
  const { store, tenant } = drive.options;
  const runs = await Promise.all([...drive.children].map((id) => store.read.run(tenant, id)));
  return runs.flatMap((run) => (run !== undefined && run.endedAt === null ? [run.id] : []));
}

/** More names than this are no help. */
const maxNamed = 10;

function openChildren(live: readonly string[]): TapeError | undefined {
  if (live.length === 0) return undefined;
  const named = `${live.slice(0, maxNamed).join(", ")}${live.length > maxNamed ? ", …" : ""}`;
  const message = `the run cannot continue as new while ${live.length} of its children live: ${named}`;
  return new TapeError("TAPE_OPEN_CHILDREN", message, { children: live.slice(0, maxNamed) });
}

function tooManyNotes({ drive }: Operations): TapeError | undefined {
  const { carriedNotes } = drive.options.store.limits;
  const { length } = drive.waits.unused;
  if (length <= carriedNotes) return undefined;
  const message = `${length} signals wait for a gate; a run carries at most ${carriedNotes} into its next generation`;
  return new TapeError("TAPE_TOO_LARGE", message, { limit: "carriedNotes" });
}
