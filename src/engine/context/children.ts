import { fingerprint } from "../../base/canonical.ts";
import { TapeError } from "../../model/errors.ts";
import type { RecordData } from "../../model/records.ts";
import type { Child, SpawnOptions } from "../../sdk/context.ts";
import type { Workflow } from "../../sdk/workflow.ts";
import { asStored } from "../replay/stored-value.ts";
import { type Operations, unwrap } from "./operations.ts";

/** Starts a child run. Its id is derived from the parent's and the position: the same on every replay. */
export function spawnChild<I, O>(
  ops: Operations,
  workflow: Workflow<I, O>,
  given: I,
  options: SpawnOptions,
): Promise<Child<O>> {
  const { name, version } = workflow;
  const { labels } = options;
  const input = asStored(given);
  const inputHash = fingerprint(input);
  return ops.operation<Child<O>>({
    kinds: ["child.started", "step.done"],
    name,
    hash: inputHash,
    args: input,
    result: ({ record }) => {
      unwrap(record.data as RecordData<"step.done">);
      const { id, pos } = record.data as RecordData<"child.started">;
      return childOf<O>(ops, id, pos);
    },
    begin: (turn) => {
      const { pos } = turn;
      const id = `${ops.drive.options.runId}.${pos}`;
      const data: RecordData<"child.started"> = {
        pos,
        id,
        workflow: name,
        input,
        inputHash,
        ...(version === undefined ? {} : { version }),
        ...(labels === undefined ? {} : { labels: { ...labels } }),
      };
      ops.drive.children.add(id);
      turn.end({ kind: "child.started", data }, childOf<O>(ops, id, pos));
    },
  });
}

function childOf<O>(ops: Operations, id: string, of: number): Child<O> {
  let result: Promise<O> | undefined;
  // Asked for once: the child ends once, and its note is used up by the first who waits for it.
  return {
    id,
    result: () => {
      result ??= resultOf<O>(ops, id, of);
      return result;
    },
  };
}

function resultOf<O>(ops: Operations, id: string, of: number): Promise<O> {
  const answer = (data: RecordData<"child.received">): O => {
    if (data.status === "COMPLETED") return data.outcome as O;
    const details = { run: id, status: data.status };
    throw new TapeError("TAPE_RUN_FAILED", `child run ${id} ended as ${data.status}`, details, data.outcome);
  };
  return ops.operation<O>({
    kinds: ["child.received"],
    name: id,
    result: ({ record }) => answer(record.data as RecordData<"child.received">),
    begin: (turn) => {
      const { pos } = turn;
      ops.wait(turn, {
        about: `child ${id}`,
        match: (note) => {
          if (note.kind !== "child.settled" || note.data.pos !== of) return undefined;
          const { status, outcome } = note.data;
          return { kind: "child.received", data: { pos, childPos: of, status, outcome } };
        },
        answer: (record) => answer(record.data as RecordData<"child.received">),
      });
    },
  });
}
