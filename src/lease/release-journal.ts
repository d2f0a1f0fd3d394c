import { isTapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type { NewRecord, TermEnd } from "../model/records.ts";
import type { Lease } from "./lease.ts";

/** The part of a store that a release needs. */
interface JournalStore {
  readonly fenced: {
    append(
      fence: Fence,
      entry: { readonly after: number; readonly records: NewRecord[]; readonly begins?: number },
    ): Promise<unknown>;
  };
  readonly read: {
    journal(
      tenant: string,
      target: { readonly journal: number },
      options: { readonly from: number; readonly inbox?: boolean },
    ): Promise<readonly { readonly seq: number }[]>;
  };
}

/** Which reactor should take the journal next, after what delay, and what the journal waits for. */
export interface Handoff {
  readonly nextReactor?: string;
  readonly delayMs?: number;
  readonly waitingFor?: readonly string[];
  readonly endReason?: TermEnd;
  /** Results of bodies may be missing in the journal. */
  readonly unrecorded?: true;
}

/** Notes and lost responses may move the ends of inbox and journal meanwhile, but only a few times. */
const maxTries = 4;

/**
 * Releases a journal after its work failed, so that a reactor retries after a back-off instead of after the whole TTL.
 * Reads first what an append without a response may have written. false: the release could not be written, and the lease
 * expires. Only for a holder that has stopped: a holder that may still act must let its lease expire.
 */
export async function releaseJournal(
  store: JournalStore,
  tenant: string,
  lease: Lease,
  head: number,
  next: Handoff = {},
): Promise<boolean> {
  const target = { journal: lease.term.journal };
  const generation = lease.begins > 1 ? { begins: lease.begins } : {};
  let after = head;
  let notesTaken = lease.notes;
  for (let tries = 0; tries < maxTries && lease.belief !== "lost"; tries++) {
    const { nextReactor, delayMs, waitingFor } = next;
    const more = {
      ...(nextReactor === undefined ? {} : { nextReactor }),
      ...(delayMs === undefined ? {} : { delayMs }),
      ...(waitingFor === undefined ? {} : { waitingFor: [...waitingFor] }),
      ...(next.unrecorded && { unrecorded: true as const }),
    };
    const data = { reason: next.endReason ?? "released", notesTaken, term: lease.stats(), ...more } as const;
    try {
      await store.fenced.append(lease.fence, { after, records: [{ kind: "term.ended", data }], ...generation });
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
