import type { Quota, QuotaLimits } from "../../model/quota.ts";
import type { Credential } from "../../model/records.ts";
import type { ScheduleRow } from "../../model/rows.ts";
import type { Page } from "./list.ts";

/** Writes that operate the store, called as `store.intake.x`: they need no lease, and `once` covers them. */
export interface AdminWriteOps {
  /** With `seen` only from the row as it was read (null: only if there is none), else TAPE_VERSION_CONFLICT. */
  putSchedule(
    tenant: string,
    row: Omit<ScheduleRow, "tenant" | "version">,
    seen?: Pick<ScheduleRow, "version" | "spec"> | null,
  ): Promise<ScheduleRow>;
  deleteSchedule(tenant: string, id: string): Promise<boolean>;
  /**
   * Deletes finished runs that ended before `endedBefore`; their tombstones stay. Returns how many. `act` is present where
   * an operator did it, for the audit.
   */
  prune(tenant: string, endedBefore: number, limit: number, act?: AuditInfo): Promise<number>;
  /**
   * The limits of a tenant; undefined: of every tenant without a setting of its own. Only named limits change: null
   * returns to the default, -1 is no limit. Goes into the audit. The first limit for runs counts those that exist, the
   * first for bytes measures every record: that takes about a second for each million.
   */
  setQuota(tenant: string | undefined, change: Partial<QuotaLimits>, act: AuditInfo): Promise<Quota>;
  /** Idempotent: a token of the same id and hash is the same token. Goes into the audit. */
  putToken(token: NewToken, act: AuditInfo): Promise<ApiToken>;
  /** Goes into the audit once; TAPE_NOT_FOUND where there is none, or it is another tenant's. */
  revokeToken(tenant: string | undefined, id: string, act: AuditInfo): Promise<ApiToken>;
  /** An audit entry without any other change: a refused call, a failed sign-in. */
  recordAudit(tenant: string, action: string, act: AuditInfo, detail?: unknown): Promise<void>;
  /** The token was used just now; recorded at most once a minute. */
  touchToken(id: string): Promise<void>;
  /** A process report, for operators: nothing may depend on it. */
  reportProcess(tenant: string, report: ProcessReport): Promise<void>;
  /** The process stops; one that never reported may call it too. */
  removeProcess(tenant: string, owner: string): Promise<void>;
}

/** What ends terms of other processes, called as `store.claim.x`. */
export interface AdminLeaseOps {
  /** A paused lease cannot be held; its present holder is fenced at once. */
  pause(tenant: string, name: string, paused: boolean, by: string, why: string, via?: Credential): Promise<void>;
  /**
   * After a restore: raises the store epoch, so that no token is ever issued twice, and ends every term. With `by` it goes
   * into the audit, of the tenant `home`.
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
  /** Of any tenant: a credential does not name its tenant. */
  token(id: string): Promise<ApiToken | undefined>;
  /** Oldest first, behind the one with the id `above`. */
  tokens(tenant?: string, page?: { above?: string; limit?: number }): Promise<Page<ApiToken>>;
  /** The limits of this tenant, and how much of them is used. */
  quota(tenant: string): Promise<Quota>;
  /** Of all tenants that have a setting or were counted, by name behind `above`; the default, without a name, is first. */
  quotas(page?: { above?: string; limit?: number }): Promise<Page<Quota>>;
  /** Processes that reported within the last minute, by label. */
  processes(tenant: string): Promise<ProcessView[]>;
  settings(): Promise<StoreSettings>;
}

/** Who did something as an operator, and why. */
export interface AuditInfo {
  readonly by: string;
  readonly reason: string;
  /** The credential of the call, where a server received it. */
  readonly via?: Credential;
  /** Where it concerns all tenants: the tenant in whose audit it is found, which is the one that runs the store. */
  readonly home?: string;
}

/** {@link AuditInfo} whose author may be left open: the caller's label or credential stands in. */
export type OperatorReason = Pick<AuditInfo, "reason"> & Partial<Pick<AuditInfo, "by">>;

/** An API token to create. */
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

/** What a process reports about itself. `body` is the process's own to choose, and short. */
export interface ProcessReport {
  /** Its incarnation, as in the leases that it holds. */
  readonly owner: string;
  readonly label: string;
  readonly body: unknown;
}

/** A process that reported lately. */
export interface ProcessView extends ProcessReport {
  /** When it last did, by the store's clock. */
  readonly at: number;
  readonly agoMs: number;
}

/** How a store is set up, for operators. */
export interface StoreSettings {
  readonly schema: number;
  readonly epoch: number;
  readonly durable: boolean;
  readonly facts: Readonly<Record<string, string | number | boolean>>;
}
