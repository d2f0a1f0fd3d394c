import { decode } from "../../../base/codec.ts";
import { TapeError } from "../../../model/errors.ts";
import type { Fence } from "../../../model/fence.ts";
import type { Limits } from "../../../model/limits.ts";
import { notFound } from "../../../model/not-found.ts";
import { isStreamToken, streamRefOf, streamToken } from "../../../model/stream-token.ts";
import type {
  Chunk,
  ChunkPage,
  ChunkRequest,
  StreamAccess,
  StreamPart,
  StreamToken,
  StreamView,
} from "../../contract/store.ts";
import { staleError } from "../../validate/arguments.ts";
import { type CheckedChunks, type CheckedStream, streamTooLarge, tooManyStreams } from "../../validate/streams.ts";
import { type Plan, type PlanContext, query, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { whyFenced } from "./append.ts";
import { findTarget } from "./target.ts";

/** Plans of streams. Chunks are no records: the feed does not have them, and no projection follows from them. */

/** The chunks of one run, or nothing. */
export function* appendChunksPlan(context: PlanContext, fence: Fence, { streams }: CheckedChunks): Plan<object> {
  const { tenant, journal, token, nonce } = fence;
  const row = yield* queryRow("stream.fence", { tenant, journal, token, nonce });
  if (row === undefined) throw staleError(fence, yield* whyFenced(fence));
  if (row.kind !== "run") throw new TapeError("TAPE_BAD_INPUT", "only a run has streams", { field: "fence", journal });
  for (const stream of streams) yield* appendStream(context, fence, stream);
  context.wake({ of: "stream", tenant, journals: [journal] });
  return {};
}

function* appendStream({ limits }: PlanContext, fence: Fence, stream: CheckedStream): Plan<void> {
  const { journal: run, token } = fence;
  const { name, from, retainMs = null, chunks } = stream;
  const last = yield* queryRow("chunk.last", { run, stream: name });
  const next = last === undefined ? 0 : Number(last.chunk_offset) + 1;
  if (next !== from) {
    if (yield* isWritten(fence, stream)) return;
    throw new TapeError("TAPE_NOT_HEAD", `the next offset of stream ${name} is ${next}, not ${from}`, {
      journal: run,
      stream: name,
      next,
      from,
    });
  }
  if (last === undefined) {
    const { count } = yield* query("stream.open", { run, name, retainMs, max: limits.streams });
    if (count === 0) throw tooManyStreams(name, limits);
  }
  let total = Number(last?.total ?? 0);
  for (const [k, { part, body, bytes }] of chunks.entries()) {
    if (body === null) {
      total -= Number((yield* queryRow("chunk.weigh", { run, stream: name, part }))?.bytes ?? 0);
      yield* query("chunk.rewind", { run, stream: name, part });
    }
    total += bytes;
    if (total > limits.streamBytes) throw streamTooLarge(name, limits);
    yield* query("chunk.append", { run, stream: name, chunkOffset: from + k, part, token, body, total });
  }
}

/** The append is the repeat of one whose response was lost: only the holder of a token writes under it. */
function* isWritten({ journal: run, token }: Fence, { name, from, chunks }: CheckedStream): Plan<boolean> {
  const chunkOffset = from + chunks.length - 1;
  return (yield* queryRow("chunk.find", { run, stream: name, chunkOffset }))?.token === String(token);
}

export function* chunksPlan(
  tenant: string,
  wanted: readonly ChunkRequest[],
  limits: Limits,
): Plan<(ChunkPage | undefined)[]> {
  const limit = Math.min(limits.pageRows, ...wanted.map((one) => one.limit ?? limits.pageRows));
  const items = JSON.stringify(wanted.map(({ run, stream, from }) => [run, stream, from]));
  const params = { tenant, wanted: items, limit, pageBytes: limits.pageBytes };
  const { rows, more: full = false } = yield* query("chunk.page", params);
  const byRequest = new Map<number, RowOf<"chunk.page">[]>();
  for (const row of rows) {
    const k = Number(row.k);
    const known = byRequest.get(k);
    if (known === undefined) byRequest.set(k, [row]);
    else known.push(row);
  }
  // Where the page was full before all requests were read, the others are read by the next call.
  const cut = full ? Number(rows.at(-1)?.k ?? 0) : undefined;
  return wanted.map((_, k) => {
    const found = byRequest.get(k);
    const more = cut !== undefined && k >= cut;
    if (found === undefined) return more ? { journal: 0, chunks: [], more, ended: false } : undefined;
    const chunks = found.flatMap(chunkOf);
    return {
      journal: Number(found[0]!.journal),
      chunks,
      // A page may be short where a rewind has left a gap in the offsets.
      more: more || Number(found.at(-1)!.chunk_offset ?? 0) < Number(chunks.length === 0 ? 0 : found[0]!.last_offset),
      ended: Boolean(found[0]!.ended),
    };
  });
}

function chunkOf({ chunk_offset, part, at, body }: RowOf<"chunk.page">): Chunk[] {
  if (chunk_offset === null) return [];
  const place = { offset: Number(chunk_offset), part: Number(part), at: Number(at) };
  return [body === null ? { ...place, rewound: true } : { ...place, value: decode(body) }];
}

export function* streamsPlan(tenant: string, id: string): Plan<StreamView[]> {
  return (yield* queryRows("stream.list", { tenant, id })).map((row) => ({
    name: row.name,
    next: Number(row.chunk_offset) + 1,
    bytes: Number(row.total),
    at: Number(row.at),
    ...(row.retain_ms !== null && { retainMs: Number(row.retain_ms) }),
  }));
}

export function* streamPartsPlan(tenant: string, id: string, stream: string, limits: Limits): Plan<StreamPart[]> {
  const rows = yield* queryRows("chunk.parts", { tenant, id, stream, limit: limits.journalRecords });
  return rows.map(({ part, bytes }) => ({ part: Number(part), bytes: Number(bytes) }));
}

export function* streamTokenPlan(
  secret: string,
  { tenant, run, stream }: Pick<StreamAccess, "tenant" | "run" | "stream">,
  ttlMs: number,
): Plan<StreamToken> {
  const journal = yield* findTarget(tenant, { run });
  if (journal === undefined) throw notFound("run", run);
  const expiresAt = Number((yield* queryRow("meta.get"))!.at) + ttlMs;
  return { token: streamToken(secret, { journal, stream, expiresAt }), expiresAt };
}

/** A wrong token costs one hash and no query. */
export function* streamAccessPlan(secret: string, token: string): Plan<StreamAccess | undefined> {
  const ref = streamRefOf(token);
  if (ref === undefined || !isStreamToken(secret, token, ref)) return undefined;
  const row = yield* queryRow("stream.subject", { journal: ref.journal });
  if (row === undefined || ref.expiresAt <= Number(row.now)) return undefined;
  return { tenant: row.tenant, run: row.id, stream: ref.stream, expiresAt: ref.expiresAt };
}

/** Streams that one sweep reads, and chunks of a stream that it deletes. */
const sweptStreams = 500;
const sweptChunks = 5_000;

/** Deletes chunks whose retention is over; returns where the next sweep continues. */
export function* sweepStreamsPlan(above: number): Plan<number> {
  const rows = yield* queryRows("stream.expired", { above, limit: sweptStreams });
  for (const { run, name, expired } of rows) {
    if (!expired) continue;
    yield* query("chunk.forget", { run: Number(run), stream: name, span: sweptChunks });
    yield* query("stream.forget", { run: Number(run), name });
  }
  return rows.length < sweptStreams ? 0 : Number(rows.at(-1)!.run);
}
