import type { Share } from "../../contract/store.ts";
import { type Plan, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";

export type FoundRow = RowOf<"lease.due">;

/** The results of a find: journals by number and, for items under a share, their callees. */
export class Findings {
  readonly callees = new Map<number, string>();
  readonly #share: Share | undefined;
  readonly #items = new Map<string, number>();

  constructor(share: Share | undefined) {
    this.#share = share;
    for (const { callee, items } of share?.busy ?? []) this.#items.set(callee, items);
  }

  get size(): number {
    return this.callees.size;
  }

  /** Adds all of them, whatever the capacity: the claimant has them already, or they have no callee. */
  *add(rows: readonly FoundRow[]): Plan<void> {
    for (const [journal, callee] of yield* this.#calleesOf(rows)) this.#take(journal, callee);
  }

  /**
   * Adds up to `limit` more, of each callee no more than its share. `find` leaves out callees at capacity. A callee
   * that reaches it with these rows is left out of the next query, so that rows behind it are found.
   */
  *fill(limit: number, find: (limit: number, full: string | null) => Plan<readonly FoundRow[]>): Plan<void> {
    const until = this.size + limit;
    for (;;) {
      const rows = yield* find(limit, this.#share === undefined ? null : JSON.stringify(this.#full()));
      let refused = false;
      for (const [journal, callee] of yield* this.#calleesOf(rows)) {
        if (this.callees.has(journal) || this.size === until) continue;
        if (this.#isFull(callee)) refused = true;
        else this.#take(journal, callee);
      }
      if (!refused || this.size === until || rows.length < limit) return;
    }
  }

  *#calleesOf(rows: readonly FoundRow[]): Plan<readonly (readonly [journal: number, callee: string])[]> {
    const journals = rows.map(({ journal }) => Number(journal));
    if (this.#share === undefined || journals.length === 0) return journals.map((journal) => [journal, ""]);
    const callees = yield* queryRows("item.callees", { journals: JSON.stringify(journals) });
    const known = new Map(callees.map(({ journal, callee }) => [Number(journal), String(callee)]));
    return journals.map((journal) => [journal, known.get(journal) ?? ""]);
  }

  #take(journal: number, callee: string): void {
    if (!this.callees.has(journal)) this.#items.set(callee, (this.#items.get(callee) ?? 0) + 1);
    this.callees.set(journal, callee);
  }

  #isFull(callee: string): boolean {
    return this.#share !== undefined && (this.#items.get(callee) ?? 0) >= this.#share.max;
  }

  #full(): string[] {
    return [...this.#items.keys()].filter((callee) => this.#isFull(callee));
  }
}
