import { isTapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type { NewRecord, TermEnd } from "../model/records.ts";
import type { Lease } from "./lease.ts";

/** What it needs of a store. */
interface JournalStore {
  readonly fenced: {
    append(fence: Fence, entry: { readonly after: number; readonly records: NewRecord[] }): Promise<unknown>;
  };
  readonly read: {
    journal(
      tenant: string,
      target: { readonly journal: number },
      options: { readonly from: number; readonly inbox?: boolean },
    ): Promise<readonly { readonly seq: number }[]>;
  };
}

/** Who is wanted next, how soon, and what for (for people). */
export interface Handoff {
  readonly nextReactor?: string;
  readonly delayMs?: number;
  readonly waitingFor?: readonly string[];
  readonly endReason?: TermEnd;
}

/** Notes and lost answers may move the ends of inbox and journal under us a few times, not for ever. */
const maxTries = 4;

/**
 * Gives a journal back after its work went wrong, so that somebody looks again after a back-off instead of after the
 * whole TTL. What an append without an answer has left behind is read first. false: it could not be told, and the lease
 * runs out by itself. Only for a holder that does nothing any more: whoever still acts must let its lease run out.
 */
export async function releaseJournal(
  store: JournalStore,
  tenant: string,
  lease: Lease,
  head: number,
  next: Handoff = {},
): Promise<boolean> {
  const target = { journal: lease.term.journal };
  let after = head;
  let notesTaken = lease.notes;
  for (let tries = 0; tries < maxTries && lease.belief !== "lost"; tries++) {
    const { nextReactor, delayMs, waitingFor } = next;
    const more = {
      ...(nextReactor === undefined ? {} : { nextReactor }),
      ...(delayMs === undefined ? {} : { delayMs }),
      ...(waitingFor === undefined ? {} : { waitingFor: [...waitingFor] }),
    };
    const data = { reason: next.endReason ?? "released", notesTaken, term: lease.stats(), ...more } as const;
    try {
      await store.fenced.append(lease.fence, { after, records: [{ kind: "term.ended", data }] });
      lease.end("given back");
      return true;
    } catch (error) {
      if (isTapeError(error, "TAPE_NOTES_PENDING")) {
        const notes = await store.read.journal(tenant, target, { from: notesTaken + 1, inbox: true });
        notesTaken = notes.at(-1)?.seq ?? notesTaken;
      } else if (isTapeError(error, "TAPE_NOT_HEAD")) {
        const tail = await store.read.journal(tenant, target, { from: after + 1 });
        after = tail.at(-1)?.seq ?? after;
      } else return false;
    }
  }
  return false;
}
