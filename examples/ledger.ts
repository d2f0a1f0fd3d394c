import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** The world of an example, outside of Tape's store: what really happened, in the order in which it happened. */
export interface Ledger {
  add(entry: Entry): void;
  entries(): readonly Entry[];
}

export interface Entry {
  readonly act: string;
  /** What it was about: an invoice, an order, an address. */
  readonly about: string;
  /** The idempotency key, where the other side keeps it. */
  readonly key?: string;
  readonly detail?: unknown;
}

/** A ledger in a file of its own, one line for each act: it survives whatever happens to the process. */
export function fileLedger(path: string): Ledger {
  return {
    add: (entry) => appendFileSync(path, `${JSON.stringify(entry)}\n`),
    entries: () =>
      existsSync(path)
        ? readFileSync(path, "utf8")
            .split("\n")
            .filter((line) => line !== "")
            .map((line) => JSON.parse(line) as Entry)
        : [],
  };
}

/** A ledger in memory, for tests. */
export function memoryLedger(): Ledger & { clear(): void } {
  let entries: readonly Entry[] = [];
  return {
    add: (entry) => {
      entries = [...entries, entry];
    },
    entries: () => entries,
    clear: () => {
      entries = [];
    },
  };
}

/** What a service does that dedupes by key: the second request with the same key changes nothing. */
export function addOnce(ledger: Ledger, entry: Entry & { readonly key: string }): void {
  if (!ledger.entries().some(({ key }) => key === entry.key)) ledger.add(entry);
}

/** The first act of this kind about this thing. */
export function findAct(ledger: Ledger, act: string, about: string): Entry | undefined {
  return ledger.entries().find((entry) => entry.act === act && entry.about === about);
}
