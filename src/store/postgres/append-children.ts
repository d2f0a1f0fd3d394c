import type { RecordData } from "../../model/records.ts";
import type { AppendResult } from "../contract/store.ts";
import { wakeOf } from "../sql/plans/append.ts";
import type { AppendItem } from "./batched-writes.ts";
import type { BatchedWrites } from "./batchers.ts";
import { spawnItemOf, startedChildren } from "./child-writes.ts";
import type { JournalAllocator } from "./journal-numbers.ts";
import type { Notifier } from "./notifier.ts";

/** The appends of runs with children: each takes its batch, then the hints are sent that its plan would send. */

interface ChildAppends {
  readonly batched: BatchedWrites;
  readonly journals: JournalAllocator;
  readonly notifier: Notifier;
}

export async function endChild({ batched, notifier }: ChildAppends, item: AppendItem): Promise<AppendResult> {
  const { parent, ...appended } = await batched.endChild.submit(item);
  if (parent === undefined) return appended; // by its plan, which has sent the hints
  const { tenant, journal: own } = item.fence;
  const { journal } = (item.entry.records[0]!.data as RecordData<"run.ended">).parent!;
  if (parent.backlog !== undefined) notifier.send(wakeOf("recovery", tenant, parent.backlog.workflow));
  for (const changed of [journal, own]) notifier.send({ of: "journal", tenant, journal: changed });
  return appended;
}

export async function appendSpawning(
  { batched, journals, notifier }: ChildAppends,
  item: AppendItem,
): Promise<AppendResult> {
  const reserved = await journals.reserve(startedChildren(item.entry));
  const spawn = spawnItemOf(item, () => reserved.next());
  reserved.done();
  const appended = await batched.spawn.submit(spawn);
  const workflows = new Set(spawn.children.map(({ workflow }) => workflow));
  for (const workflow of workflows) notifier.send(wakeOf("recovery", item.fence.tenant, workflow));
  return appended;
}
