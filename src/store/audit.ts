import { fingerprint } from "../base/canonical.ts";
import { hash } from "../base/late-builtins.ts";
import type { AuditEntry } from "./contract/store.ts";

/** The hash of an entry: over its own fields and the hash of its predecessor in the same tenant. */
export function auditHash(previous: string, entry: AuditEntry): string {
  const { cursor: _cursor, hash: _hash, ...fields } = entry;
  return hash("sha256", `${previous} ${fingerprint(fields)}`, "hex");
}

export interface AuditCheck {
  /** Entries whose hashes were compared. */
  readonly checked: number;
  /** Entries written before hashes were introduced. */
  readonly unsealed: number;
  /** The newest entry. Store it elsewhere: it proves later that no entry up to it was changed or cut off. */
  readonly head: { readonly n: number; readonly hash: string } | undefined;
  /** One sentence per inconsistency, oldest first. */
  readonly faults: readonly string[];
}

/** Checks the entries of one tenant, oldest first, for changed, missing and inserted ones. */
export function checkAudit(entries: readonly AuditEntry[]): AuditCheck {
  const faults: string[] = [];
  let [previous, n, checked, unsealed] = ["", 0, 0, 0];
  for (const entry of entries) {
    if (entry.n !== n + 1)
      faults.push(entry.n > n ? `entries ${n + 1} to ${entry.n - 1} are missing` : `entry ${entry.n} is there twice`);
    if (entry.hash === "" && checked === 0) unsealed++;
    else {
      checked++;
      if (auditHash(previous, entry) !== entry.hash) faults.push(`entry ${entry.n} is not what was written`);
    }
    [previous, n] = [entry.hash, entry.n];
  }
  return { checked, unsealed, head: n === 0 ? undefined : { n, hash: previous }, faults };
}
