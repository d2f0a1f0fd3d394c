import type { JournalRecord, Term } from "../api.ts";
import type { Row } from "./timeline-rows.ts";

/** A later term that replayed the journal: recorded results were returned, nothing was executed again. */
export interface Replay {
  readonly token: string;
  readonly label: string;
  readonly from: number;
  /** The term's first record of its own, or its end: the replay was over by then. */
  readonly to: number;
}

/** A run that was woken often replayed everything each time; the latest replays are enough to see it. */
const maxReplays = 8;
const leaseKinds: ReadonlySet<string> = new Set(["term.started", "term.ended", "notes.taken"]);

export function replaysOf(terms: readonly Term[], records: readonly JournalRecord[], now: number): Replay[] {
  // A manual term only records the takeover; it drives nothing.
  const drives = terms.filter(({ by }) => by === undefined);
  return drives
    .slice(1)
    .slice(-maxReplays)
    .map(({ token, label, startedAt, endedAt }) => {
      const own = records.find((record) => record.token === token && !leaseKinds.has(record.kind));
      return { token, label, from: startedAt, to: own?.at ?? endedAt ?? now };
    });
}

/** The replays that returned this row's result. */
export function replayedIn({ result }: Row, replays: readonly Replay[]): readonly Replay[] {
  return result === undefined ? [] : replays.filter(({ token }) => BigInt(token) > BigInt(result.token));
}
