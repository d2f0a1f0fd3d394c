import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import type { RouteName } from "../protocol/contract.ts";
import type { Store } from "../store/contract/store.ts";
import { limitKey } from "./address.ts";
import type { Call } from "./handler-types.ts";

/** The same thing again within this time is counted; the next entry of its kind has the count. */
const spacingMs = 60_000;
/**
 * Refusals of many kinds must not fill the store: beyond this, entries are only counted. Each action has its own room,
 * so that strangers who fail to sign in cannot hide what a token was refused.
 */
const maxPerMinute = 120;
const maxKinds = 1_000;

interface Seen {
  at: number;
  /** Times since the last entry, which were not written. */
  more: number;
}

interface Minute {
  at: number;
  count: number;
  /** Of this action, since its last entry, for which there was no room. */
  unwritten: number;
}

type Refused = Pick<Call, "tenant" | "token" | "name" | "via">;

export interface AuditorOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** The tenant of whoever runs the server: what concerns no tenant goes there. */
  readonly home: string;
}

/**
 * What the audit should know although nothing was done: calls that were refused for their role, sign-ins that failed, the
 * use of the bootstrap token. Sampled, because strangers decide how many there are; what cannot be written is logged.
 */
export class Auditor {
  readonly #options: AuditorOptions;
  readonly #seen = new Map<string, Seen>();
  readonly #minutes = new Map<string, Minute>();

  constructor(options: AuditorOptions) {
    this.#options = options;
  }

  forbidden(who: Refused, route: RouteName | "none", needs: unknown): void {
    const detail = { route, ...defined({ needs }) };
    this.#tell(`forbidden ${who.tenant} ${who.token} ${route}`, who.tenant, "call.refused", who, detail);
  }

  signInFailed(from: string | undefined): void {
    const via = { name: "nobody", role: "none", ...defined({ address: from }) };
    const who = { tenant: this.#options.home, token: undefined, name: "nobody", via };
    this.#tell(`sign-in ${limitKey(from ?? "")}`, this.#options.home, "signin.failed", who, {});
  }

  bootstrapUsed(who: Refused): void {
    this.#tell(`bootstrap ${who.via.address}`, who.tenant, "token.bootstrap_used", who, {});
  }

  #tell(kind: string, tenant: string, action: string, who: Refused, detail: Readonly<Record<string, unknown>>): void {
    const { store, clock, log } = this.#options;
    const now = clock.mono();
    const seen = this.#seen.get(kind);
    if (seen !== undefined && now - seen.at < spacingMs) {
      seen.more++;
      return;
    }
    const minute = this.#minuteOf(action, now);
    if (minute.count >= maxPerMinute) {
      if (minute.unwritten++ === 0) log("warn", "server.audit_full", { action, tenant, most: maxPerMinute });
      return;
    }
    minute.count++;
    const { unwritten } = minute;
    minute.unwritten = 0;
    const more = seen?.more ?? 0;
    this.#seen.delete(kind);
    this.#seen.set(kind, { at: now, more: 0 });
    if (this.#seen.size > maxKinds) this.#seen.delete(this.#seen.keys().next().value!);
    const act = { by: who.name, reason: reasons[action] ?? action, via: who.via };
    store.intake
      .recordAudit(tenant, action, act, { ...detail, ...(more > 0 && { more }), ...(unwritten > 0 && { unwritten }) })
      .catch((error: unknown) => log("warn", "server.audit_unwritten", { action, tenant, ...errorFields(error) }));
  }

  #minuteOf(action: string, now: number): Minute {
    const minute = this.#minutes.get(action) ?? { at: now, count: 0, unwritten: 0 };
    this.#minutes.set(action, minute);
    if (now - minute.at >= spacingMs) Object.assign(minute, { at: now, count: 0 });
    return minute;
  }
}

const reasons: Readonly<Record<string, string>> = {
  "call.refused": "its role may not do this",
  "signin.failed": "a credential that is none",
  "token.bootstrap_used": "the bootstrap token of the settings",
};
