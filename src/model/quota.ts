import { TapeError } from "./errors.ts";

/** The limits of a tenant. Each kind is a column of the quotas table. */
export const quotaKinds = ["runs", "bytes", "schedules", "streams"] as const;
export type QuotaKind = (typeof quotaKinds)[number];

/** The default for tenants without their own setting. No tenant has an empty name. */
export const everyTenant = "";
/** As a setting: no limit, even if there is a default. */
export const unlimited = -1;

/** null: the default applies. */
export type QuotaLimits = Readonly<Record<QuotaKind, number | null>>;

/** A tenant's quotas and their usage. */
export interface Quota {
  /** Empty: the default for all tenants. */
  readonly tenant: string;
  /** The settings of this tenant. */
  readonly set: QuotaLimits;
  /** The limits in force; null: no limit. */
  readonly limits: QuotaLimits;
  readonly used: {
    /** Runs that have not ended, children included. Counted only if runs or bytes are limited. */
    readonly runs: number;
    /** Bytes of records at the last measurement; null: no tenant has a limit for bytes. */
    readonly bytes: number | null;
    readonly schedules: number;
  };
}

export const effectiveLimit = (own: number | null, byDefault: number | null): number | null => {
  const limit = own ?? byDefault;
  return limit === unlimited ? null : limit;
};

export function quotaExceeded(quota: QuotaKind, used: number, limit: number): TapeError {
  const message = `the tenant's quota of ${quota} is exhausted: ${used} of ${limit}`;
  return new TapeError("TAPE_QUOTA", message, { quota, used, limit });
}
