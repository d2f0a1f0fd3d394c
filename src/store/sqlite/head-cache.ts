import { type Fence, makeFence } from "../../model/fence.ts";
import type { Term } from "../../model/lease.ts";
import type { JournalKind } from "../../model/rows.ts";
import type { Query } from "../sql/plan.ts";
import type { Session } from "./session.ts";
import { Statements } from "./statements.ts";

export interface Head {
  readonly fence: Fence;
  readonly kind: JournalKind;
  readonly tenant: string;
  readonly run: number;
  readonly notes: number;
  /** Not null: the run has a queue, started later, or has a unique key. */
  readonly queue: number | null;
  /** The token as it is bound: a number if it fits, which costs less. */
  readonly bound: number | bigint;
  seq: number;
  /** A run that was created here and has had only plain records since: it has no effect, gate, timer or child. */
  readonly plainRun: boolean;
}

/**
 * What this connection last read or wrote about a lease and the head of its journal. It replaces the fence statement
 * only inside BEGIN IMMEDIATE, and only while `pragma data_version`, read there, is unchanged: then no other connection
 * has committed since, and the cache equals the file. Otherwise the committer clears it. Every statement of ours that
 * writes a lease or a record drops the heads it may have changed.
 */
export class HeadCache {
  readonly #heads = new Map<number, Head>();
  #floor: bigint | undefined;
  /** Enough for every run that a process drives at once; beyond it the oldest half is dropped. */
  readonly #maxHeads = 50_000;

  admit(session: Session, fence: Fence, after: number): Head | undefined {
    const known = this.#heads.get(fence.journal);
    if (
      known !== undefined &&
      known.seq === after &&
      known.fence.token === fence.token &&
      known.fence.nonce === fence.nonce &&
      known.tenant === fence.tenant
    ) {
      return known;
    }
    const { tenant, journal, token, nonce } = fence;
    const { rows } = session.statements.run("fence", { tenant, journal, token, nonce, after }, session.times);
    const row = rows[0];
    if (row === undefined) return undefined;
    const head = {
      fence,
      kind: row.kind as JournalKind,
      tenant: row.tenant,
      run: Number(row.run),
      notes: Number(row.notes),
      queue: row.queue === null ? null : Number(row.queue),
      bound: boundOf(token),
      seq: after,
      plainRun: false,
    };
    this.#set(head);
    return head;
  }

  /** Remembers a term granted in this transaction. `plainRun`: of a run created in it. */
  remember(term: Term, plainRun: boolean): void {
    const { fence, kind, tenant, run, notes, head } = term;
    this.#set({
      fence: makeFence(tenant, fence.journal, fence.token, fence.nonce),
      kind,
      tenant,
      run,
      notes,
      queue: term.queue === undefined ? null : 0,
      bound: boundOf(fence.token),
      seq: head,
      plainRun,
    });
  }

  isPlainRun(journal: unknown): boolean {
    return typeof journal === "number" && this.#heads.get(journal)?.plainRun === true;
  }

  #set(head: Head): void {
    if (this.#heads.size >= this.#maxHeads) {
      for (const journal of [...this.#heads.keys()].slice(0, this.#maxHeads / 2)) this.#heads.delete(journal);
    }
    this.#heads.set(head.fence.journal, head);
  }

  /** Tokens of the store's epoch are above this. */
  tokenFloor(session: Session): bigint {
    this.#floor ??= BigInt(session.statements.run("meta.get", {}, session.times).rows[0]?.token_floor as string);
    return this.#floor;
  }

  /** Called before each statement of a plan. */
  noticeWrite(call: Query): void {
    if (call.sql === "meta.restored") this.#floor = undefined;
    if (!touchesHeads(call.sql)) return;
    const { journal } = call.params;
    if (typeof journal === "number") this.#heads.delete(journal);
    else this.#heads.clear();
  }

  clear(): void {
    this.#floor = undefined;
    this.#heads.clear();
  }
}

export const boundOf = (token: bigint): number | bigint => (token <= 9007199254740991n ? Number(token) : token);

const touching = new Map<string, boolean>();

function touchesHeads(name: string): boolean {
  let touches = touching.get(name);
  if (touches === undefined) {
    const writes = Statements.all.get(name)?.writes;
    touches = writes !== undefined && (writes.has("leases") || writes.has("records"));
    touching.set(name, touches);
  }
  return touches;
}
