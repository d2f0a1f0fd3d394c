import type { Chunk, FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";
import { streamer } from "../plan-streams.ts";
import type { StreamCall } from "../streaming.ts";
import { recordsOf } from "./journal.ts";
import { combine, each, exempt, type Invariant, notApplicable, settles } from "./judge.ts";

/** What a reader keeps that drops a part when it starts again. */
function keptOf(chunks: readonly Chunk[]): string[] {
  let kept: { readonly part: number; readonly text: string }[] = [];
  for (const chunk of chunks) {
    if ("rewound" in chunk) kept = kept.filter(({ part }) => part !== chunk.part);
    else kept.push({ part: chunk.part, text: String(chunk.value) });
  }
  return kept.map(({ text }) => text);
}

/** The body that wrote this text, as the text begins: its name, and the number of the call. */
const bodyOf = (text: string): string => text.slice(0, text.indexOf("/"));
const callOf = (text: string): number => Number(/\/(\d+)/.exec(text)?.[1]);

/** The records of bodies that have ended, with the call whose result they have. */
function endedBodies(evidence: Evidence): { readonly call: StreamCall; readonly record: FeedRecord }[] {
  const journal = evidence.runs.find(({ id }) => id === streamer)?.journal;
  if (journal === undefined) return [];
  return recordsOf(evidence, journal).flatMap((record) => {
    if (record.kind !== "step.done" && record.kind !== "decision.made") return [];
    const call = evidence.streams.calls.find(({ id }) => id === record.data.value);
    return call === undefined ? [] : [{ call, record }];
  });
}

/**
 * What readers keep of a body that has ended is what the call with its result wrote, in order, by the call's own log:
 * for a reader that followed through all faults, and for one that comes late. The latter never meets a dead attempt.
 */
export const streamsAreExact: Invariant = (evidence) => {
  const { calls, seen, late } = evidence.streams;
  if (calls.length === 0) return notApplicable;
  const readers = [
    ...(settles(evidence) ? [["the live reader", keptOf(seen)] as const] : []),
    ["a late reader", keptOf(late)] as const,
  ];
  const bodies = each(endedBodies(evidence), ({ call }) =>
    readers.flatMap(([reader, kept]) => {
      const own = kept.filter((text) => bodyOf(text) === call.op.name);
      return own.join() === call.written.join()
        ? []
        : [`${reader} has [${own.join(", ")}] of ${call.id}, which wrote [${call.written.join(", ")}]`];
    }),
  );
  const offsets = each([seen, late], (chunks) =>
    chunks.flatMap(({ offset }, k) =>
      k === 0 || offset > chunks[k - 1]!.offset ? [] : [`offset ${offset} follows ${chunks[k - 1]!.offset}`],
    ),
  );
  const dead = each(endedBodies(evidence), ({ call }) =>
    late.flatMap((chunk) =>
      "value" in chunk && bodyOf(String(chunk.value)) === call.op.name && !call.written.includes(String(chunk.value))
        ? [`a late reader meets ${chunk.value}, which ${call.id} did not write`]
        : [],
    ),
  );
  return combine([bodies, offsets, dead]);
};

/** Once a later call of a body streams, or its result is recorded, no earlier call does. */
export const zombiesDoNotStream: Invariant = (evidence) => {
  const { calls, seen } = evidence.streams;
  if (calls.length === 0) return notApplicable;
  const newest = new Map<string, number>();
  return each(seen, (chunk) => {
    if ("rewound" in chunk) return exempt;
    const text = String(chunk.value);
    const [body, call] = [bodyOf(text), callOf(text)];
    const before = newest.get(body) ?? 0;
    newest.set(body, Math.max(before, call));
    return call >= before ? [] : [`${text} at offset ${chunk.offset} follows a chunk of call ${before}`];
  });
};
