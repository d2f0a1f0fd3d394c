import { TapeError } from "./errors.ts";

/** What a tenant may have at most. Each kind is a column of the table of quotas. */
export const quotaKinds = ["runs", "bytes", "schedules", "streams"] as const;
export type QuotaKind = (typeof quotaKinds)[number];

/** For all tenants that have no setting of their own. No tenant has an empty name. */
export const everyTenant = "";
/** As a setting: no limit, although there is a default. */
export const unlimited = -1;

/** null: the default's. */
export type QuotaLimits = Readonly<Record<QuotaKind, number | null>>;

/** A tenant's quotas, and how much of them it has used. */
export interface Quota {
  /** Empty: the default of all tenants. */
  readonly tenant: string;
  /** As they were set. */
  readonly set: QuotaLimits;
  /** As they hold: null is no limit. */
  readonly limits: QuotaLimits;
  readonly used: {
    /** Runs that have not ended, children included. Counted only where a limit for runs or bytes holds. */
    readonly runs: number;
    /** Bytes of records, as measured last; null: nobody has a limit for bytes. */
    readonly bytes: number | null;
    readonly schedules: number;
  };
}

export const holdingLimit = (own: number | null, all: number | null): number | null => {
  const limit = own ?? all;
  return limit === unlimited ? null : limit;
};

export function quotaExceeded(quota: QuotaKind, used: number, limit: number): TapeError {
  const message = `the tenant's quota of ${quota} is used up: ${used} of ${limit}`;
  return new TapeError("TAPE_QUOTA", message, { quota, used, limit });
}
