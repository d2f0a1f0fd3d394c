import { reactorOf } from "./build.ts";
import type { Change } from "./changes.ts";
import { defaultPriority } from "./queue.ts";
import { encodeBody, type RecordContext } from "./record-context.ts";
import type { RecordData } from "./records.ts";
import {
  debouncePos,
  debounceScope,
  leaseQueue,
  startDelay,
  startPos,
  startsLater,
  uniquePos,
  uniqueScope,
} from "./slot.ts";

/** How the start of a run changes the tables; a part of projection.ts. */

/** The changes that create a run, its first record, its lease and its budget. `source`: the run that starts it. */
export function changesOfCreation(
  tenant: string | null,
  data: RecordData<"run.created">,
  at: RecordContext,
  source: number | null = null,
): Change[] {
  const { id, workflow, version, inputHash, labels, parent, budget } = data;
  const own = at.journal;
  const changes: Change[] = [
    {
      do: "run.create",
      journal: own,
      tenant,
      id,
      workflow,
      version: version ?? null,
      inputHash,
      labels: labels === undefined ? null : JSON.stringify(labels),
      parent: parent?.journal ?? null,
      parentPos: parent?.pos ?? null,
      source,
    },
    {
      do: "lease.create",
      journal: own,
      kind: "run",
      run: own,
      tenant,
      source: parent?.journal ?? source,
      workflow,
      token: 0n,
      nextReactor: startsLater(data) ? null : reactorOf("recovery", data.build ?? null),
      maxStallMs: data.maxStallMs ?? null,
      queue: leaseQueue(data),
    },
    { do: "record.create", journal: own, seq: 1, token: 0n, kind: "run.created", body: encodeBody(data) },
  ];
  if (data.build !== undefined) changes.push({ do: "lease.pin", journal: own, build: data.build });
  if (labels !== undefined) changes.push({ do: "labels.create", journal: own });
  for (const [unit, cap] of Object.entries(budget ?? {})) changes.push({ do: "budget.create", run: own, unit, cap });
  if (leaseQueue(data) !== null) changes.push(...queuedCreation(data, own));
  return changes;
}

/** What a run needs that waits in a queue, starts later, or has a unique key. */
function queuedCreation(data: RecordData<"run.created">, own: number): Change[] {
  const { workflow, queue, expiresMs, unique, debounce } = data;
  const changes: Change[] = [];
  const delay = startDelay(data);
  if (queue !== undefined || delay !== undefined) {
    changes.push({
      do: "slot.create",
      journal: own,
      queue: queue?.name ?? "",
      key: queue?.key ?? "",
      class: queue?.priority ?? defaultPriority,
      state: delay === undefined ? "QUEUED" : "DELAYED",
      expires: expiresMs !== undefined,
      weight: queue?.weight ?? null,
    });
  }
  const timer = (purpose: string, delayMs: number, until: number | null): void => {
    changes.push({ do: "timer.create", run: own, pos: startPos, purpose, delayMs, until });
  };
  if (delay !== undefined) timer("start", delay.delayMs, delay.until);
  if (expiresMs !== undefined) {
    const { delayMs, until } = delay ?? { delayMs: 0, until: null };
    timer("expire", delayMs + expiresMs, until === null ? null : until + expiresMs);
  }
  if (unique !== undefined) {
    const claim = { run: own, pos: uniquePos, scope: uniqueScope(workflow), businessKey: unique.key };
    changes.push({ do: unique.onConflict === "cancel" ? "business_key.replace" : "business_key.claim", ...claim });
  }
  if (debounce !== undefined) {
    const scope = debounceScope(workflow);
    changes.push({ do: "business_key.claim", run: own, pos: debouncePos, scope, businessKey: debounce.key });
  }
  return changes;
}

export function childStarted(data: RecordData<"child.started">, place: RecordContext): Change[] {
  const { pos, id, workflow, version, input, inputHash, labels, maxStallMs, queue, startedBy, budget, joined } = data;
  const { build } = data;
  if (joined) return [];
  const detached = startedBy !== undefined;
  const child: RecordData<"run.created"> = {
    id,
    workflow,
    input,
    inputHash,
    ...(detached ? { startedBy } : { parent: { journal: place.journal, pos } }),
    ...(budget !== undefined && detached && { budget }),
    ...(version === undefined ? {} : { version }),
    ...(labels === undefined ? {} : { labels }),
    ...(maxStallMs === undefined ? {} : { maxStallMs }),
    ...(queue === undefined ? {} : { queue }),
    ...(build === undefined ? {} : { build }),
  };
  const created = changesOfCreation(null, child, { ...place, journal: place.allocate() }, place.journal);
  if (queue === undefined || detached) return created;
  return [{ do: "slot.assert_unnested", journal: place.journal, queue: queue.name, key: queue.key }, ...created];
}
