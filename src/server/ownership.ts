import { TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type { NewRecord } from "../model/records.ts";
import type { Store } from "../store/contract.ts";

/** A million journals of one tenant's workers take a look each; the busy ones stay known. */
const mostKnown = 100_000;

/**
 * Which journals are whose. The store's fence does not ask for a tenant, because nobody guesses a nonce; here every number
 * that a caller names must be of the caller's tenant, or it answers as if there were none. A journal never changes its
 * tenant, so what was once seen stays true.
 */
export class Ownership {
  readonly #store: Store;
  readonly #known = new Map<number, string>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The store said so itself: it granted a term, created a run. */
  learn(tenant: string, journal: number): void {
    this.#known.delete(journal);
    this.#known.set(journal, tenant);
    if (this.#known.size > mostKnown) this.#known.delete(this.#known.keys().next().value!);
  }

  async owns(tenant: string, journal: number): Promise<boolean> {
    const known = this.#known.get(journal);
    if (known !== undefined) return known === tenant;
    if ((await this.#store.read.lease(tenant, { journal })) === undefined) return false;
    this.learn(tenant, journal);
    return true;
  }

  /** Those of `journals` that are not the tenant's. */
  async strangers(tenant: string, journals: Iterable<number>): Promise<ReadonlySet<number>> {
    const strange = new Set<number>();
    const unknown: number[] = [];
    for (const journal of new Set(journals)) {
      const known = this.#known.get(journal);
      if (known === undefined) unknown.push(journal);
      else if (known !== tenant) strange.add(journal);
    }
    await Promise.all(
      unknown.map(async (journal) => {
        if (!(await this.owns(tenant, journal))) strange.add(journal);
      }),
    );
    return strange;
  }
}

/** What the store says of a fence whose journal does not exist. */
export function absentFence({ journal, token }: Fence): TapeError {
  const message = `token ${token} is not the current one (none, held by nobody)`;
  return new TapeError("TAPE_FENCED", message, { journal, token: String(token), current: undefined });
}

/** Other journals that a record reaches into: a parent's inbox, a root's budget, an effect of a child. */
export function journalsIn(record: NewRecord): readonly number[] {
  if (record.kind === "step.done") return []; // by far the commonest, and it names none
  const { data } = record as { readonly data: unknown };
  if (typeof data !== "object" || data === null) return [];
  const { run, root, parent, on, ...rest } = data as Readonly<Record<string, unknown>>;
  const of = record.kind.startsWith("budget.") ? rest.of : undefined; // elsewhere it is a position
  const inside = Array.isArray(on) ? on.map((one) => (one as { run?: unknown } | null)?.run) : [];
  const named = [of, run, root, (parent as { journal?: unknown } | null | undefined)?.journal, ...inside];
  return named.filter((one) => Number.isSafeInteger(one) && (one as number) > 0) as number[];
}
