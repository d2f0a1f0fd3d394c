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

/** After a failed renewal the next try comes soon: there is little time left. */
const retryMs = 250;

/** Verdicts that end a term. Any other (the row was locked, an answer got lost) says nothing about it. */
const terminalCodes: ReadonlySet<ErrorCode> = new Set(["TAPE_FENCED", "TAPE_LEASE_LOST", "TAPE_LEASE_STALLED"]);

/** When a lease is looked at next, on the monotonic clock, and whether an attempt is under way until then. */
interface Deadline {
  readonly at: number;
  readonly waiting: boolean;
}

/**
 * One timer for all leases of a process. When the earliest is due, every lease that is due soon renews with it, in one
 * call; the others keep their own time, also while that call hangs. For each lease:
 *
 *   resting ──due──▶ waiting ──answer──▶ resting (a heartbeat after it was sent) | gone (lost)
 *      ▲                └──failed, or out of patience──▶ resting, in doubt (tried again soon)
 *
 * Whatever its state, it is looked at no later than its deadline, so that a loss is noticed even if nobody asks. An
 * answer that comes after we lost patience still counts if the deadline has not passed.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #watches = new Map<Lease, Deadline>();
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
    if (!this.#stopped && lease.belief !== "lost") this.#rest(lease, nextBeatMs(lease));
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

  /** Renews one lease at once. Resolves when that is answered or its patience is over. */
  async renewNow(lease: Lease): Promise<void> {
    const answered = new AbortController();
    const patience = this.#options.clock.sleep(attemptTimeoutMs(lease), answered.signal);
    await Promise.race([this.#renew([lease]), patience]);
    answered.abort();
  }

  #rest(lease: Lease, inMs: number): void {
    // At least a millisecond: what is left of a deadline may be less than the clock can tell apart.
    const ms = Math.max(1, Math.min(inMs, lease.remainingMs()));
    this.#watch(lease, { at: this.#options.clock.mono() + ms, waiting: false });
  }

  #watch(lease: Lease, watch: Deadline): void {
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
    for (const [lease, { at, waiting }] of this.#watches) {
      if (lease.belief === "lost") continue; // noticed by asking: it has left the watches
      if (waiting && at <= now) this.#doubt(lease, "the renewal was not answered in time");
      else if (!waiting && at <= now + earlyMs(lease)) ready.push(lease);
    }
    void this.#renew(ready);
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#watches.values()) next = Math.min(next, at);
    if (next !== Number.POSITIVE_INFINITY) this.#arm(next);
  }

  async #renew(due: readonly Lease[]): Promise<void> {
    const { clock, log } = this.#options;
    const sent = readClocks(clock);
    // A lease that a listener gave back meanwhile, or that was never ours to keep, is not renewed.
    const leases = due.filter((lease) => this.#watches.has(lease) && lease.belief !== "lost");
    if (leases.length === 0) return;
    for (const lease of leases) this.#watch(lease, { at: sent.mono + attemptTimeoutMs(lease), waiting: true });
    try {
      const verdicts = await this.#options.renew(leases.map(renewalOf));
      for (const [k, lease] of leases.entries()) this.#judge(lease, verdicts[k], sent);
    } catch (error) {
      log("debug", "lease.renewal_failed", { ...errorFields(error), leases: leases.length });
      for (const lease of leases) this.#doubt(lease, `renewal failed: ${(error as Error).message}`);
    }
  }

  #judge(lease: Lease, verdict: RenewResult | undefined, sent: ClockReading): void {
    if (!this.#watches.has(lease)) return; // released or lost meanwhile
    if (verdict?.ok) {
      lease.renewed(sent, verdict.notes);
      if (lease.belief !== "lost") this.#rest(lease, nextBeatMs(lease));
    } else if (verdict !== undefined && terminalCodes.has(verdict.error.code)) {
      const { code, message } = verdict.error;
      this.#options.log("warn", "lease.lost", { name: lease.name, token: lease.token, code });
      lease.end(code === "TAPE_LEASE_STALLED" ? "stalled: renewed without progress" : message);
    } else {
      this.#doubt(lease, `renewal failed: ${verdict?.error.message ?? "no verdict"}`);
    }
  }

  #doubt(lease: Lease, why: string): void {
    if (!this.#watches.has(lease)) return;
    // One without heartbeat was only asked after: it stays what it was.
    if (lease.neverExpires) {
      this.#rest(lease, Number.POSITIVE_INFINITY);
      return;
    }
    lease.markUnknown(why);
    if (lease.belief !== "lost") this.#rest(lease, Math.min(retryMs, lease.timings.heartbeatMs / 3));
  }
}

/** From the sending of the last success: an answer that took long must not put off the next heartbeat. */
function nextBeatMs(lease: Lease): number {
  const { heartbeatMs, trustMs } = lease.timings;
  return lease.neverExpires ? Number.POSITIVE_INFINITY : heartbeatMs - (trustMs - lease.remainingMs());
}

/** How long before its time a lease renews together with one that is due. One without heartbeat never does. */
function earlyMs(lease: Lease): number {
  return lease.neverExpires ? 0 : lease.timings.heartbeatMs / 4;
}

/** How long one attempt may take: cut to what is left, because an answer after the deadline is of no use. */
function attemptTimeoutMs(lease: Lease): number {
  return Math.max(1, Math.min(lease.timings.heartbeatMs, lease.timings.ttlMs, lease.remainingMs()));
}

function renewalOf(lease: Lease): RenewRequest {
  const { progress, progressNote } = lease.counters();
  return {
    fence: lease.fence,
    progress: progress + lease.moves,
    ...(progressNote === undefined ? {} : { progressNote }),
  };
}
