import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** The fake world of an example, outside Tape's store: what really happened, in order. */
export interface Ledger {
  add(entry: Entry): void;
  entries(): readonly Entry[];
}

export interface Entry {
  readonly kind: string;
  /** An invoice, an order, an address. */
  readonly subject: string;
  /** The idempotency key, where the service stores it. */
  readonly key?: string;
  readonly detail?: unknown;
}

/** A ledger in its own file, one line per entry, so that it survives the death of the process. */
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

/** Adds like a service that deduplicates by key: a second request with the same key changes nothing. */
export function addOnce(ledger: Ledger, entry: Entry & { readonly key: string }): void {
  if (!ledger.entries().some(({ key }) => key === entry.key)) ledger.add(entry);
}

/** The first entry of this kind and subject. */
export function findEntry(ledger: Ledger, kind: string, subject: string): Entry | undefined {
  return ledger.entries().find((entry) => entry.kind === kind && entry.subject === subject);
}
