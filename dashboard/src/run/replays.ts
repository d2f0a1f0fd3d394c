import type { Entry, Term } from "../api.ts";
import type { Row } from "./timeline-rows.ts";

/** A later term went through what was there already: results were handed back from the journal, no body was called. */
export interface Replay {
  readonly token: string;
  readonly label: string;
  readonly from: number;
  /** Its first record of its own, or its end: by then it was through. */
  readonly to: number;
}

/** A run that was woken often has replayed everything as often; the latest say enough. */
const most = 8;
const ofLease: ReadonlySet<string> = new Set(["term.started", "term.ended", "notes.taken"]);

export function replaysOf(terms: readonly Term[], records: readonly Entry[], now: number): Replay[] {
  // Whoever took it over by hand wrote that down and drove nothing.
  const drives = terms.filter(({ by }) => by === undefined);
  return drives
    .slice(1)
    .slice(-most)
    .map(({ token, label, begunAt, endedAt }) => {
      const own = records.find((record) => record.token === token && !ofLease.has(record.kind));
      return { token, label, from: begunAt, to: own?.at ?? endedAt ?? now };
    });
}

/** Those in which this row's result was handed back. */
export function replayedIn({ done }: Row, replays: readonly Replay[]): readonly Replay[] {
  return done === undefined ? [] : replays.filter(({ token }) => BigInt(token) > BigInt(done.token));
}
