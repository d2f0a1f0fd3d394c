import { sinkLease } from "../model/dead-letter.ts";
import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import { checkpointText, readCheckpoint, type SinkCheckpoint } from "../model/sink-checkpoint.ts";
import type { AuditInfo } from "../store/contract/store.ts";
import { acquireManually, appendLast, type OperatorDeps, operatorAction } from "./manual-lease.ts";

/**
 * What an operator does to a sink. `rewind`: its fan-out continues before this event (`17:5:1794848992501`), from the
 * `start` of the feed, or from `now`. `forget`: the sink has no checkpoint any more and holds back no pruning.
 */
export type SinkChange =
  | { readonly to: "pause" | "resume" | "forget" }
  | { readonly to: "rewind"; readonly event: string };

/**
 * Changes the checkpoint of a sink. The lease is taken over, so that no fan-out can move it at the same time; the
 * fan-out then continues from the new one.
 */
export async function changeSink(
  deps: OperatorDeps,
  sink: string,
  change: SinkChange,
  audit: AuditInfo,
): Promise<void> {
  const { store, tenant, clock } = deps;
  const target = { name: sinkLease(sink) };
  if ((await store.read.lease(tenant, target)) === undefined) throw notFound("sink", sink);
  const place = change.to === "rewind" ? await placeBefore(deps, change.event) : undefined;
  // The store's epoch, for a sink without a checkpoint.
  const { epoch } = await store.read.settings();
  const { lease, term } = await acquireManually(deps, target, audit, { reactor: "operator", condition: "any" });
  try {
    const now = clock.wall();
    const { paused, ...known } = readCheckpoint(term.checkpoint) ?? { cursor: null, at: now, epoch };
    const next: Readonly<Record<SinkChange["to"], () => SinkCheckpoint | null>> = {
      pause: () => ({ ...known, paused: { by: audit.by, reason: audit.reason, at: now } }),
      resume: () => known,
      rewind: () => ({ ...known, ...place, ...(paused && { paused }) }),
      forget: () => null,
    };
    const checkpoint = next[change.to]();
    await store.fenced.checkpoint(lease.fence, checkpoint && checkpointText(checkpoint));
    const detail = change.to === "rewind" ? { sink, event: change.event } : { sink };
    await appendLast(deps, target, lease, term, (notesTaken) => [
      operatorAction(audit, `sink.${change.to}`, detail),
      { kind: "term.ended", data: { reason: "manual", notesTaken, term: lease.stats() } },
    ]);
  } finally {
    lease.end("released");
  }
}

/** A position in the feed, and when the record before it was written. */
type Place = Pick<SinkCheckpoint, "cursor" | "at">;

/** Scans the feed: a cursor names a position, and an event's id only a record. */
async function placeBefore({ store, tenant, clock }: OperatorDeps, event: string): Promise<Place> {
  let place: Place = { cursor: null, at: 0 };
  if (event === "start") return place;
  if (event === "now") return { cursor: await store.read.frontier(tenant), at: clock.wall() };
  const read = /^(\d{1,15})(i?):(\d{1,15}):(\d{1,15})$/.exec(event);
  if (read === null) {
    throw new TapeError("TAPE_BAD_INPUT", `${event.slice(0, 64)} is no id of an event`, { field: "event" });
  }
  const [journal, inbox, seq, at] = [Number(read[1]), read[2] === "i", Number(read[3]), Number(read[4])];
  for (;;) {
    const page = await store.read.feed(place.cursor ?? undefined, undefined, tenant);
    for (const record of page.records) {
      const found = record.journal === journal && record.seq === seq && record.at === at;
      if (found && (record.in === "inbox") === inbox) return place;
      place = { cursor: record.cursor, at: record.at };
    }
    place = { cursor: page.cursor, at: place.at };
    if (page.records.length === 0 && page.more !== true) break;
  }
  throw new TapeError("TAPE_NOT_FOUND", `the feed has no event ${event}: its run may have been pruned`, { event });
}
