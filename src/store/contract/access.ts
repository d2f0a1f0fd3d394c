import type { Credential } from "../../model/records.ts";

/** Who may, and who did: credentials of a server's callers, operators, and the audit. */

/** Who does something by hand, and why. */
export interface AuditInfo {
  readonly by: string;
  readonly reason: string;
  /** Through which credential, where a server took the call. */
  readonly via?: Credential;
  /** Where it concerns all tenants: the one in whose audit it is found, that of the tenant that runs the store. */
  readonly home?: string;
}

export interface NewToken {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly role: string;
  /** Of its secret, which the store never sees. */
  readonly hash: string;
  /** Absent: it does not expire. */
  readonly expiresInMs?: number;
}

/** A credential of a server's caller. */
export interface ApiToken extends Omit<NewToken, "expiresInMs"> {
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly usedAt: number | null;
}

/**
 * Something an operator did, written in the same transaction and kept apart from the journals: what deletes runs does not
 * delete it.
 */
export interface AuditEntry {
  /** Continues the listing behind this entry. */
  readonly cursor: string;
  readonly journal: number;
  /** The run's id or the lease's name; null: it concerns the store. */
  readonly subject: string | null;
  /** Empty: it concerns all tenants. */
  readonly tenant: string;
  readonly at: number;
  readonly who: string;
  readonly action: string;
  readonly reason: string;
  readonly detail?: unknown;
  readonly via?: Credential;
  /** Dense in each tenant, from 1. */
  readonly n: number;
  /** Over this entry and the hash of the one before it; empty: from before there were hashes. */
  readonly hash: string;
}
