import { hash } from "node:crypto";
import { fingerprint } from "../base/canonical.ts";
import type { AuditEntry } from "./contract/store.ts";

/** Of an entry's own words and the hash of the entry before it in its tenant. */
export function auditHash(before: string, entry: AuditEntry): string {
  const { cursor: _cursor, hash: _hash, ...words } = entry;
  return hash("sha256", `${before} ${fingerprint(words)}`, "hex");
}

export interface AuditCheck {
  /** Entries whose hashes were compared. */
  readonly checked: number;
  /** Entries from before there were hashes. */
  readonly unsealed: number;
  /** The newest entry: write it down elsewhere to be sure later that nothing before it was changed or cut off. */
  readonly head: { readonly n: number; readonly hash: string } | undefined;
  /** What does not fit, oldest first. */
  readonly faults: readonly string[];
}

/** Looks along one tenant's entries, given oldest first, for what was changed, left out or put between. */
export function checkAudit(entries: readonly AuditEntry[]): AuditCheck {
  const faults: string[] = [];
  let [before, n, checked, unsealed] = ["", 0, 0, 0];
  for (const entry of entries) {
    if (entry.n !== n + 1)
      faults.push(entry.n > n ? `entries ${n + 1} to ${entry.n - 1} are missing` : `entry ${entry.n} is there twice`);
    if (entry.hash === "" && checked === 0) unsealed++;
    else {
      checked++;
      if (auditHash(before, entry) !== entry.hash) faults.push(`entry ${entry.n} is not what was written`);
    }
    [before, n] = [entry.hash, entry.n];
  }
  return { checked, unsealed, head: n === 0 ? undefined : { n, hash: before }, faults };
}
