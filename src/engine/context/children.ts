import { fingerprint } from "../../base/canonical.ts";
import { TapeError } from "../../model/errors.ts";
import { defaultPriority } from "../../model/queue.ts";
import type { RecordData } from "../../model/records.ts";
import type { QueuedData } from "../../model/start-shape.ts";
import type { Child, SpawnOptions } from "../../sdk/context.ts";
import { currentSite } from "../../sdk/current.ts";
import type { QueueChoice } from "../../sdk/queue-choice.ts";
import { queueFieldsOf } from "../../sdk/start-options.ts";
import type { Workflow } from "../../sdk/workflow.ts";
import { asStored } from "../replay/stored-value.ts";
import { type Operations, unwrap } from "./operations.ts";
import type { Scope } from "./scope.ts";

/** Starts a child run. Its id is derived from the parent's id and the position, so it is the same on every replay. */
export function spawnChild<I, O>(
  ops: Operations,
  workflow: Workflow<I, O>,
  value: I,
  options: SpawnOptions,
): Promise<Child<O>> {
  const { name, version, maxStallMs } = workflow;
  const { labels } = options;
  const queue = queuedChild(workflow, value, options);
  const input = asStored(value);
  const inputHash = fingerprint(input);
  const scope = ops.scopeAt(currentSite());
  return ops.operation<Child<O>>({
    kinds: ["child.started", "step.done"],
    name,
    hash: inputHash,
    args: input,
    result: ({ record }) => {
      unwrap(record.data as RecordData<"step.done">);
      const { id, pos } = record.data as RecordData<"child.started">;
      scope?.addChild(pos, id);
      return childOf<O>(ops, id, pos, scope);
    },
    begin: (handle) => {
      const { pos } = handle;
      const id = `${ops.drive.options.runId}.${pos}`;
      const build = inheritedBuild(ops, name);
      const data: RecordData<"child.started"> = {
        pos,
        id,
        workflow: name,
        input,
        inputHash,
        ...(version === undefined ? {} : { version }),
        ...(labels === undefined ? {} : { labels: { ...labels } }),
        ...(maxStallMs === undefined ? {} : { maxStallMs }),
        ...(queue === undefined ? {} : { queue }),
        ...(build === undefined ? {} : { build }),
      };
      ops.drive.children.add(id);
      scope?.addChild(pos, id);
      handle.end({ kind: "child.started", data }, childOf<O>(ops, id, pos, scope));
    },
  });
}

/** A pinned run passes its build on to children whose workflows its process pins, too. */
function inheritedBuild({ drive }: Operations, child: string): string | undefined {
  const { build, workflows } = drive.options.runner;
  const isPinned = (name: string): boolean => workflows.get(name)?.pinned === true;
  return isPinned(child) && isPinned(drive.history.created.workflow) ? build : undefined;
}

export function queuedChild<I, O>(workflow: Workflow<I, O>, input: I, options: QueueChoice): QueuedData | undefined {
  const {
    queue: name,
    key = "",
    priority = defaultPriority,
    weight,
  } = queueFieldsOf("spawn", workflow, input, options);
  return name === undefined ? undefined : { name, key, priority, ...(weight !== undefined && { weight }) };
}

function childOf<O>(ops: Operations, id: string, childPos: number, scope: Scope | undefined): Child<O> {
  let result: Promise<O> | undefined;
  // One operation for all calls: the child ends once, and the first wait consumes its note.
  return {
    id,
    result: () => {
      result ??= resultOf<O>(ops, id, childPos, scope);
      return result;
    },
  };
}

function resultOf<O>(ops: Operations, id: string, childPos: number, scope: Scope | undefined): Promise<O> {
  const outcomeOf = (data: RecordData<"child.received">): O => {
    scope?.childEnded(childPos);
    ops.drive.children.delete(id); // it has ended
    if (data.status === "COMPLETED") return data.outcome as O;
    const details = { run: id, status: data.status };
    throw new TapeError("TAPE_RUN_FAILED", `child run ${id} ended as ${data.status}`, details, data.outcome);
  };
  return ops.operation<O>({
    kinds: ["child.received"],
    name: id,
    result: ({ record }) => outcomeOf(record.data as RecordData<"child.received">),
    begin: (handle) => {
      const { pos } = handle;
      ops.wait(handle, {
        about: `child ${id}`,
        match: (note) => {
          if (note.kind !== "child.settled" || note.data.pos !== childPos) return undefined;
          const { status, outcome } = note.data;
          return { kind: "child.received", data: { pos, childPos, status, outcome } };
        },
        resultOf: (record) => outcomeOf(record.data as RecordData<"child.received">),
      });
    },
  });
}
