import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { RenewRequest, RenewResult } from "../model/lease.ts";
import { type ClockReading, readClocks } from "./belief.ts";
import type { Lease } from "./lease.ts";

export interface HeartbeatOptions {
  readonly renew: (renewals: readonly RenewRequest[]) => Promise<RenewResult[]>;
  readonly clock: Clock;
  readonly log: Log;
}

/** After a failed renewal the next attempt follows soon, because little time is left. */
const retryMs = 250;

/** Codes that end a term. Any other (the row was locked, a response was lost) leaves it unknown. */
const terminalCodes: ReadonlySet<ErrorCode> = new Set(["TAPE_FENCED", "TAPE_LEASE_LOST", "TAPE_LEASE_STALLED"]);

/** When a lease is checked next, on the monotonic clock, and whether an attempt is in flight until then. */
interface NextCheck {
  readonly at: number;
  readonly waiting: boolean;
}

/**
 * One timer for all leases of a process. When the earliest is due, every lease that is due soon renews with it, in one
 * call. The others keep their own time, even while that call hangs. For each lease:
 *
 *   idle ──due──▶ waiting ──response──▶ idle (until one heartbeat after the request was sent) | gone (lost)
 *     ▲               └──failed, or timed out──▶ idle, unknown (retried soon)
 *
 * In every state a lease is checked no later than its trust expires, so that a loss is noticed even if no code reads the
 * lease. A response that arrives after the attempt timed out still counts if trust has not expired.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #watches = new Map<Lease, NextCheck>();
  #cancel: (() => void) | undefined;
  #armedFor = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  get leases(): readonly Lease[] {
    return [...this.#watches.keys()];
  }

  add(lease: Lease): void {
    if (!this.#stopped && lease.belief !== "lost") this.#schedule(lease, nextBeatMs(lease));
  }

  remove(lease: Lease): void {
    this.#watches.delete(lease);
    if (this.#watches.size === 0) this.#disarm();
  }

  stop(): void {
    this.#stopped = true;
    this.#disarm();
    this.#watches.clear();
  }

  /** Renews one lease at once. Resolves with the response, or when the attempt times out. */
  async renewNow(lease: Lease): Promise<void> {
    const settled = new AbortController();
    const timeout = this.#options.clock.sleep(attemptTimeoutMs(lease), settled.signal);
    await Promise.race([this.#renew([lease]), timeout]);
    settled.abort();
  }

  #schedule(lease: Lease, inMs: number): void {
    // At least a millisecond, because the rest of a deadline may be less than the clock's resolution.
    const ms = Math.max(1, Math.min(inMs, lease.remainingMs()));
    this.#watch(lease, { at: this.#options.clock.mono() + ms, waiting: false });
  }

  #watch(lease: Lease, watch: NextCheck): void {
    this.#watches.set(lease, watch);
    if (watch.at < this.#armedFor) this.#arm(watch.at);
  }

  #arm(at: number): void {
    this.#cancel?.();
    this.#armedFor = at;
    this.#cancel = this.#options.clock.after(Math.max(0, at - this.#options.clock.mono()), () => this.#beat());
  }

  #disarm(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#armedFor = Number.POSITIVE_INFINITY;
  }

  #beat(): void {
    this.#disarm();
    const now = this.#options.clock.mono();
    const ready: Lease[] = [];
    const due = new Set<number>();
    for (const [{ timings }, { at }] of this.#watches) if (at <= now) due.add(timings.heartbeatMs);
    for (const [lease, { at, waiting }] of this.#watches) {
      if (lease.belief === "lost") continue; // reading `belief` noticed the loss and removed it
      if (waiting && at <= now) this.#markUnknown(lease, "the renewal timed out");
      else if (!waiting && at <= now + earlyMs(lease, due)) ready.push(lease);
    }
    void this.#renew(ready);
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#watches.values()) next = Math.min(next, at);
    if (next !== Number.POSITIVE_INFINITY) this.#arm(next);
  }

  async #renew(due: readonly Lease[]): Promise<void> {
    const { clock, log } = this.#options;
    const sent = readClocks(clock);
    // A lease that a listener has released meanwhile, or that was never adopted, is not renewed.
    const leases = due.filter((lease) => this.#watches.has(lease) && lease.belief !== "lost");
    if (leases.length === 0) return;
    for (const lease of leases) this.#watch(lease, { at: sent.mono + attemptTimeoutMs(lease), waiting: true });
    try {
      const verdicts = await this.#options.renew(leases.map(renewalOf));
      for (const [k, lease] of leases.entries()) this.#judge(lease, verdicts[k], sent);
    } catch (error) {
      log("debug", "lease.renewal_failed", { ...errorFields(error), leases: leases.length });
      for (const lease of leases) this.#markUnknown(lease, `renewal failed: ${(error as Error).message}`);
    }
  }

  #judge(lease: Lease, verdict: RenewResult | undefined, sent: ClockReading): void {
    if (!this.#watches.has(lease)) return; // released or lost meanwhile
    if (verdict?.ok) {
      lease.renewed(sent, verdict.notes);
      if (lease.belief !== "lost") this.#schedule(lease, nextBeatMs(lease));
    } else if (verdict !== undefined && terminalCodes.has(verdict.error.code)) {
      const { code, message } = verdict.error;
      this.#options.log("warn", "lease.lost", { name: lease.name, token: lease.token, code });
      if (code === "TAPE_LEASE_STALLED") lease.endStalled();
      else lease.endFenced(message);
    } else {
      this.#markUnknown(lease, `renewal failed: ${verdict?.error.message ?? "no verdict"}`);
    }
  }

  #markUnknown(lease: Lease, why: string): void {
    if (!this.#watches.has(lease)) return;
    // A lease without a heartbeat was only checked: its state stays the same.
    if (lease.neverExpires) {
      this.#schedule(lease, Number.POSITIVE_INFINITY);
      return;
    }
    lease.markUnknown(why);
    if (lease.belief !== "lost") this.#schedule(lease, Math.min(retryMs, lease.timings.heartbeatMs / 3));
  }
}

/** Counts from when the last successful renewal was sent: a slow response must not delay the next heartbeat. */
function nextBeatMs(lease: Lease): number {
  const { heartbeatMs, trustMs } = lease.timings;
  return lease.neverExpires ? Number.POSITIVE_INFINITY : heartbeatMs - (trustMs - lease.remainingMs());
}

/**
 * How early a lease renews together with one that is due. With half a heartbeat, leases of one timing soon share a call,
 * whenever they were acquired: of two beats, one is at most that long before the other. A lease with a longer heartbeat
 * than those that are due would renew twice as often, so it comes a quarter early. One without a heartbeat never does.
 */
function earlyMs(lease: Lease, due: ReadonlySet<number>): number {
  const { heartbeatMs } = lease.timings;
  return lease.neverExpires ? 0 : heartbeatMs / (due.has(heartbeatMs) ? 2 : 4);
}

/** How long one attempt may take: capped at the remaining time, because a response after the deadline is useless. */
function attemptTimeoutMs(lease: Lease): number {
  return Math.max(1, Math.min(lease.timings.heartbeatMs, lease.timings.ttlMs, lease.remainingMs()));
}

function renewalOf(lease: Lease): RenewRequest {
  const { progressNote } = lease.counters();
  const { progress, agoMs } = lease.reportedProgress();
  return {
    fence: lease.fence,
    progress,
    ...(agoMs > 0 && { progressAgoMs: agoMs }),
    ...(progressNote === undefined ? {} : { progressNote }),
  };
}
