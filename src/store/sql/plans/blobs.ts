import { TapeError } from "../../../model/errors.ts";
import type { Fence } from "../../../model/fence.ts";
import type { LeaseTarget } from "../../../model/lease.ts";
import type { BlobChunk } from "../../contract/store.ts";
import { staleError } from "../../validate/arguments.ts";
import { blobTooLarge, type CheckedBlobPart } from "../../validate/blobs.ts";
import { type Plan, type PlanContext, query, queryRow } from "../plan.ts";
import { whyFenced } from "./append.ts";
import { findTarget } from "./target.ts";

/** Plans of blobs. Each chunk is a transaction of its own, so that a large blob keeps no other writer waiting. */

/** Stores one chunk, or nothing. A repeat writes nothing more. */
export function* putBlobPlan({ limits }: PlanContext, fence: Fence, part: CheckedBlobPart): Plan<object> {
  const { tenant, journal, token, nonce } = fence;
  const { blob, n, chunks, text, bytes } = part;
  const row = yield* queryRow("stream.fence", { tenant, journal, token, nonce });
  if (row === undefined) throw staleError(fence, yield* whyFenced(fence));
  if (row.kind !== "run") throw new TapeError("TAPE_BAD_INPUT", "only a run has blobs", { field: "fence", journal });
  if ((yield* queryRow("blob.get", { journal, blob, n, tenant: null })) !== undefined) return {};
  const stored = yield* queryRow("blob.stored", { journal, blob });
  if (Number(stored?.bytes ?? 0) + bytes > limits.blobBytes) throw blobTooLarge(limits);
  const begins = Number(row.begins);
  const all = Number((yield* queryRow("blob.weigh", { journal, begins }))?.bytes ?? 0);
  if (all + bytes > limits.journalBlobBytes) {
    const message = `the blobs of the run, or of its generation, take more than ${limits.journalBlobBytes} bytes`;
    throw new TapeError("TAPE_TOO_LARGE", message, { limit: "journalBlobBytes", journal });
  }
  const { count } = yield* query("blob.count", { tenant, bytes });
  yield* query("blob.put", { journal, blob, n, chunks, bytes, counted: count > 0, body: text, begins });
  return {};
}

export function* blobPlan(tenant: string, target: LeaseTarget, blob: string, n: number): Plan<BlobChunk | undefined> {
  const named = "journal" in target;
  const journal = named ? target.journal : yield* findTarget(tenant, target);
  if (journal === undefined) return undefined;
  const row = yield* queryRow("blob.get", { journal, blob, n, tenant: named ? tenant : null });
  return row === undefined ? undefined : { chunks: Number(row.chunks), text: row.body };
}
