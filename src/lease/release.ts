import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { isTapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type { NewRecord, TermEnd } from "../model/records.ts";
import type { Lease } from "./lease.ts";

export interface ReleaseOptions {
  readonly append: (fence: Fence, entry: { after: number; records: readonly NewRecord[] }) => Promise<unknown>;
  readonly clock: Clock;
  readonly random: Random;
}

/** `acknowledged`: the store recorded the release. If false, the lease expires or already has a new holder. */
export interface ReleaseResult {
  readonly acknowledged: boolean;
  readonly error?: unknown;
}

/** Writes the end of a term into its journal, and retries while responses get lost, for at most `withinMs`. */
export async function releaseTerm(
  lease: Lease,
  end: TermEnd,
  withinMs: number,
  options: ReleaseOptions,
): Promise<ReleaseResult> {
  const done = new AbortController();
  const tooLate = options.clock.sleep(withinMs, done.signal).then(() => ({ acknowledged: false }));
  try {
    return await Promise.race([appendTermEnd(lease, end, done.signal, options), tooLate]);
  } finally {
    done.abort();
  }
}

async function appendTermEnd(
  lease: Lease,
  end: TermEnd,
  stop: AbortSignal,
  { append, clock, random }: ReleaseOptions,
): Promise<ReleaseResult> {
  const data = { reason: end, notesTaken: lease.notes, term: lease.stats() };
  const entry = { after: lease.head, records: [{ kind: "term.ended", data } as const] };
  let uncertain = false;
  for (let tries = 1; !stop.aborted; tries++) {
    try {
      await append(lease.fence, entry);
      return { acknowledged: true };
    } catch (error) {
      // After a lost response, "stale" means that the release was written. Otherwise another owner has the lease.
      if (isTapeError(error, "TAPE_FENCED")) return { acknowledged: uncertain, error };
      if (isTapeError(error, "TAPE_OUTCOME_UNKNOWN")) uncertain = true;
      else if (!isTapeError(error) || error.retry !== "later") return { acknowledged: false, error };
      await clock.sleep(backoffMs(tries, { baseMs: 50, capMs: 1_000 }, random), stop);
    }
  }
  return { acknowledged: false };
}
