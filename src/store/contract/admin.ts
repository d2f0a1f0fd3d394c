import type { Quota, QuotaLimits } from "../../model/quota.ts";
import type { Credential } from "../../model/records.ts";
import type { ScheduleRow } from "../../model/rows.ts";
import type { Page } from "./list.ts";

/** Writes that administer the store, called as `store.intake.x`. They need no lease, and `once` covers them. */
export interface AdminWriteOps {
  /**
   * With `seen`, only if the row is still as it was read (null: only if there is none), else TAPE_VERSION_CONFLICT.
   * `audit` records a change of the rule in the audit log, in the same transaction.
   */
  putSchedule(
    tenant: string,
    row: Omit<ScheduleRow, "tenant" | "version">,
    seen?: Pick<ScheduleRow, "version" | "spec"> | null,
    audit?: ScheduleAudit,
  ): Promise<ScheduleRow>;
  /** Deletes a schedule; false: there was none. */
  deleteSchedule(tenant: string, id: string): Promise<boolean>;
  /**
   * Deletes finished runs that ended before `endedBefore`; their tombstones stay. Returns how many. `audit` is given if
   * an operator requested it. A run with a record that a sink has not passed is kept, unless `past` is true, which
   * requires `audit`.
   */
  prune(tenant: string, endedBefore: number, limit: number, audit?: AuditInfo, past?: boolean): Promise<number>;
  /**
   * Sets limits of a tenant; undefined: of every tenant without its own setting. Only the given limits change: null
   * restores the default, -1 means no limit. Recorded in the audit log. The first limit on runs counts the existing
   * ones and the first on bytes measures every record: about a second per million.
   */
  setQuota(tenant: string | undefined, change: Partial<QuotaLimits>, audit: AuditInfo): Promise<Quota>;
  /** Idempotent: a token with the same id and hash is the same token. Recorded in the audit log. */
  putToken(token: NewToken, audit: AuditInfo): Promise<ApiToken>;
  /** Recorded in the audit log once. TAPE_NOT_FOUND if there is none, or if it belongs to another tenant. */
  revokeToken(tenant: string | undefined, id: string, audit: AuditInfo): Promise<ApiToken>;
  /** An audit entry without any other change: a rejected call, a failed sign-in. */
  recordAudit(tenant: string, action: string, audit: AuditInfo, detail?: unknown): Promise<void>;
  /** The token was used now; recorded at most once a minute. */
  touchToken(id: string): Promise<void>;
  /** A process report, for operators: nothing may depend on it. */
  reportProcess(tenant: string, report: ProcessReport): Promise<void>;
  /** The process stops. Allowed for a process that never reported, too. */
  removeProcess(tenant: string, owner: string): Promise<void>;
}

/** Calls that end terms of other processes, called as `store.claim.x`. */
export interface AdminLeaseOps {
  /** A paused lease cannot be held; its current holder is fenced immediately. */
  pause(tenant: string, name: string, paused: boolean, by: string, reason: string, via?: Credential): Promise<void>;
  /**
   * After a restore: raises the store epoch, so that no token is ever issued twice, and ends every term. With `by` it
   * is recorded in the audit log of the tenant `home`.
   */
  restored(
    reason: string,
    by?: string,
    via?: Credential,
    home?: string,
  ): Promise<{ readonly epoch: number; readonly ended: number }>;
}

/** Credentials, quotas, processes and settings, called as `store.read.x`. */
export interface AdminReadOps {
  /** A token of any tenant: a credential does not name its tenant. */
  token(id: string): Promise<ApiToken | undefined>;
  /** Oldest first, after the one with the id `above`. */
  tokens(tenant?: string, page?: { above?: string; limit?: number }): Promise<Page<ApiToken>>;
  /** The limits of this tenant, and how much of each is used. */
  quota(tenant: string): Promise<Quota>;
  /**
   * Of all tenants that have a setting or were counted, by name after `above`. The default, without a name, is first.
   */
  quotas(page?: { above?: string; limit?: number }): Promise<Page<Quota>>;
  /** Processes that reported within the last minute, by label. */
  processes(tenant: string): Promise<ProcessView[]>;
  /** How the store is configured. */
  settings(): Promise<StoreSettings>;
}

/** The operator who did something, and the reason. */
export interface AuditInfo {
  readonly by: string;
  readonly reason: string;
  /** The credential of the call, if a server received it. */
  readonly via?: Credential;
  /**
   * For an action that concerns all tenants: the tenant whose audit log records it, that is, the store's own operator.
   */
  readonly home?: string;
}

/** {@link AuditInfo} with an optional author, which defaults to the caller's label or credential. */
export type OperatorReason = Pick<AuditInfo, "reason"> & Partial<Pick<AuditInfo, "by">>;

/** An API token to create. */
export interface NewToken {
  /** The public part of the token. */
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  /** The permissions of its holder. */
  readonly role: string;
  /** The hash of its secret, which the store never sees. */
  readonly hash: string;
  /** Absent: it does not expire. */
  readonly expiresInMs?: number;
}

/** A credential of a server's caller. */
export interface ApiToken extends Omit<NewToken, "expiresInMs"> {
  readonly createdAt: number;
  readonly expiresAt: number | null;
  /** When it was revoked; null: it is valid. */
  readonly revokedAt: number | null;
  /** When it was last used; null: never. */
  readonly usedAt: number | null;
}

/** What a process reports about itself. `body` is up to the process, and short. */
export interface ProcessReport {
  /** Its incarnation, as in the leases it holds. */
  readonly owner: string;
  readonly label: string;
  readonly body: unknown;
}

/** A process that reported recently. */
export interface ProcessView extends ProcessReport {
  /** Time of the last report, by the store's clock. */
  readonly at: number;
  readonly agoMs: number;
}

/** How a store is configured, for operators. */
export interface StoreSettings {
  /** The version of the schema. */
  readonly schema: number;
  /** Grows when a copy is restored. */
  readonly epoch: number;
  /** Whether a commit survives a power failure. */
  readonly durable: boolean;
  /** Figures of the database, by name. */
  readonly facts: Readonly<Record<string, string | number | boolean>>;
}

/** Who changed a schedule, why, and which of its fields. */
export interface ScheduleAudit extends AuditInfo {
  readonly changed: readonly string[];
}
