import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import type { Store } from "../store/contract/store.ts";
import { limitKey } from "./address.ts";
import type { Call } from "./handler-types.ts";

/** Repetitions within this time are only counted; the next entry of the kind carries the count. */
const spacingMs = 60_000;
/**
 * Entries per action and minute. Rejections of many kinds must not fill the store: beyond this bound they are only
 * counted. Each action has its own bound, so that failed sign-ins cannot hide the calls that were refused to a token.
 */
const maxPerMinute = 120;
const maxKinds = 1_000;

interface SeenKind {
  at: number;
  /** Unwritten repetitions since the last entry. */
  more: number;
}

interface Minute {
  at: number;
  count: number;
  /** Entries of this action beyond the bound since its last written entry. */
  unwritten: number;
}

type RefusedCaller = Pick<Call, "tenant" | "token" | "name" | "via">;

export interface AuditorOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** The tenant that operates the server. Entries without a tenant go there. */
  readonly home: string;
}

/**
 * Records events in the audit log that changed nothing: calls refused for their role, failed sign-ins, use of the
 * bootstrap token. Sampled, because callers without a credential can cause any number; a failed write is logged.
 */
export class Auditor {
  readonly #options: AuditorOptions;
  readonly #seen = new Map<string, SeenKind>();
  readonly #minutes = new Map<string, Minute>();

  constructor(options: AuditorOptions) {
    this.#options = options;
  }

  forbidden(who: RefusedCaller, route: string, needs: unknown): void {
    const detail = { route, ...defined({ needs }) };
    this.#record(`forbidden ${who.tenant} ${who.token} ${route}`, who.tenant, "call.refused", who, detail);
  }

  signInFailed(from: string | undefined): void {
    const via = { name: "anonymous", role: "none", ...defined({ address: from }) };
    const who = { tenant: this.#options.home, token: undefined, name: "anonymous", via };
    this.#record(`sign-in ${limitKey(from ?? "")}`, this.#options.home, "signin.failed", who, {});
  }

  bootstrapUsed(who: RefusedCaller): void {
    this.#record(`bootstrap ${who.via.address}`, who.tenant, "token.bootstrap_used", who, {});
  }

  #record(
    kind: string,
    tenant: string,
    action: string,
    who: RefusedCaller,
    detail: Readonly<Record<string, unknown>>,
  ): void {
    const { store, clock, log } = this.#options;
    const now = clock.mono();
    const seen = this.#seen.get(kind);
    if (seen !== undefined && now - seen.at < spacingMs) {
      seen.more++;
      return;
    }
    const minute = this.#minuteOf(action, now);
    if (minute.count >= maxPerMinute) {
      if (minute.unwritten++ === 0) log("warn", "server.audit_full", { action, tenant, max: maxPerMinute });
      return;
    }
    minute.count++;
    const { unwritten } = minute;
    minute.unwritten = 0;
    const more = seen?.more ?? 0;
    this.#seen.delete(kind);
    this.#seen.set(kind, { at: now, more: 0 });
    if (this.#seen.size > maxKinds) this.#seen.delete(this.#seen.keys().next().value!);
    const audit = { by: who.name, reason: reasons[action] ?? action, via: who.via };
    store.intake
      .recordAudit(tenant, action, audit, { ...detail, ...(more > 0 && { more }), ...(unwritten > 0 && { unwritten }) })
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
  "call.refused": "the role may not make this call",
  "signin.failed": "invalid credential",
  "token.bootstrap_used": "bootstrap token used",
};
