import { fingerprint } from "../../base/canonical.ts";
import { isTapeError, type TapeError } from "../../model/errors.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import type { DetachedOptions, DetachedRun } from "../../sdk/context.ts";
import { assertKnownKeys, assertName } from "../../sdk/validate.ts";
import type { Workflow } from "../../sdk/workflow.ts";
import type { OperationHandle } from "../core/operation.ts";
import { asStored } from "../replay/stored-value.ts";
import { queuedChild } from "./children.ts";
import { type Operations, unwrap } from "./operations.ts";

const known = ["detached", "id", "labels", "budget", "queue", "key", "priority"];

/**
 * Starts a run that has no parent: it outlives this one, which neither waits for it nor cancels it. With an id of its
 * own it may exist already; with the same workflow and input it is the same run, as for every start.
 */
export function spawnDetached<I, O>(
  ops: Operations,
  workflow: Workflow<I, O>,
  value: I,
  options: DetachedOptions,
): Promise<DetachedRun> {
  const subject = `spawn of ${workflow.name}`;
  assertKnownKeys(subject, options, known);
  const { id: chosen, labels, budget } = options;
  if (chosen !== undefined) assertName(`${subject}: the id`, chosen);
  const { name, version, maxStallMs } = workflow;
  const queue = queuedChild(workflow, value, options);
  const input = asStored(value);
  const inputHash = fingerprint(input);
  return ops.operation<DetachedRun>({
    kinds: ["child.started", "step.done"],
    name,
    hash: inputHash,
    args: input,
    result: ({ record }) => {
      unwrap(record.data as RecordData<"step.done">);
      return { id: (record.data as RecordData<"child.started">).id };
    },
    begin: (handle) => {
      const { runId } = ops.drive.options;
      const { pos } = handle;
      const data: RecordData<"child.started"> = {
        ...{ pos, id: chosen ?? `${runId}.${pos}`, workflow: name, input, inputHash, startedBy: runId },
        ...(version !== undefined && { version }),
        ...(labels !== undefined && { labels: { ...labels } }),
        ...(maxStallMs !== undefined && { maxStallMs }),
        ...(queue !== undefined && { queue }),
        ...(budget !== undefined && { budget: millionths(budget) }),
      };
      if (chosen === undefined) handle.end({ kind: "child.started", data }, { id: data.id });
      else new ChosenId(ops, handle, data).write(false);
    },
  });
}

const millionths = (budget: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(budget).map(([unit, cap]) => [unit, Math.round(cap * 1_000_000)]));

/** The start of a run under an id that another run may have. */
class ChosenId {
  readonly #ops: Operations;
  readonly #handle: OperationHandle<DetachedRun>;
  readonly #data: RecordData<"child.started">;

  constructor(ops: Operations, handle: OperationHandle<DetachedRun>, data: RecordData<"child.started">) {
    this.#ops = ops;
    this.#handle = handle;
    this.#data = data;
  }

  /** Creates the run, or with `joined` only records that it exists. */
  write(joined: boolean): void {
    const { drive } = this.#ops;
    const { id } = this.#data;
    const data = joined ? { ...this.#data, joined: true as const } : this.#data;
    const written = (): void => {
      this.#handle.resolve({ id });
      drive.parkIfIdle();
    };
    drive.journal.enqueue([{ kind: "child.started", data }], written, (error) => this.#refused(error));
  }

  #refused(error: TapeError): void {
    if (!isTapeError(error, "TAPE_RUN_CONFLICT")) {
      this.#fail(error);
      return;
    }
    const { drive } = this.#ops;
    drive.activeBodies++;
    void this.#isSame()
      .then((same) => (same ? this.write(true) : this.#fail(error)))
      .catch((failure: unknown) => drive.fail(failure))
      .finally(() => {
        drive.activeBodies--;
        drive.parkIfIdle();
      });
  }

  /** Compared as the store returns it: with a codec its rows have other hashes. */
  async #isSame(): Promise<boolean> {
    const { store, tenant } = this.#ops.drive.options;
    const { id, workflow, inputHash } = this.#data;
    const [first] = await store.read.journal(tenant, { run: id }, { from: 1, limit: 1 });
    return first?.kind === "run.created" && first.data.workflow === workflow && first.data.inputHash === inputHash;
  }

  #fail(refusal: TapeError): void {
    const error = asStored(refusal);
    const { pos } = this.#handle;
    const record: NewRecord = { kind: "step.done", data: { pos, name: this.#data.workflow, error } };
    this.#handle.endWithError(error, record);
  }
}
