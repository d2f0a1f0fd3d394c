import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Renewal, Renewed } from "../model/lease.ts";
import { type Moment, momentOf } from "./belief.ts";
import type { Lease } from "./lease.ts";

export interface HeartbeatOptions {
  readonly renew: (renewals: readonly Renewal[]) => Promise<Renewed[]>;
  readonly clock: Clock;
  readonly log: Log;
}

/** After a failed renewal the next try comes soon: there is little time left. */
const hurriedMs = 250;

/**
 * One timer for all leases of a process. When the earliest is due, every lease that is due soon renews with it, in one
 * call. A renewal that fails or takes too long says nothing about the lease: it is tried again until the deadline.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  /** When each lease is to be renewed next, on the monotonic clock. */
  readonly #due = new Map<Lease, number>();
  #cancel: (() => void) | undefined;
  #armedFor = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  get leases(): readonly Lease[] {
    return [...this.#due.keys()];
  }

  add(lease: Lease): void {
    this.#plan(lease, lease.timings.heartbeatMs);
  }

  remove(lease: Lease): void {
    this.#due.delete(lease);
    if (this.#due.size === 0) this.#disarm();
  }

  stop(): void {
    this.#stopped = true;
    this.#disarm();
    this.#due.clear();
  }

  #plan(lease: Lease, inMs: number): void {
    if (this.#stopped) return;
    // Never later than the deadline: its passing must be noticed even if nobody asks.
    const at = this.#options.clock.mono() + Math.min(inMs, lease.remainingMs() + 1);
    this.#due.set(lease, at);
    if (at < this.#armedFor) this.#arm(at);
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
    for (const [lease, at] of this.#due) {
      if (lease.belief === "lost") {
        // Noticed here, without a question to the store: its time is up by our own clocks.
        lease.lost("the deadline passed without a successful renewal");
        this.#due.delete(lease);
      } else if (at <= now + lease.timings.heartbeatMs / 4) ready.push(lease);
    }
    if (ready.length > 0) void this.renewNow(ready);
    else this.#rearm();
  }

  #rearm(): void {
    let next = Number.POSITIVE_INFINITY;
    for (const at of this.#due.values()) next = Math.min(next, at);
    if (next !== Number.POSITIVE_INFINITY && !this.#stopped) this.#arm(next);
  }

  async renewNow(leases: readonly Lease[]): Promise<void> {
    const { clock, log } = this.#options;
    const sent = momentOf(clock);
    // Cut to what is left: an answer after the deadline of the most urgent lease is of no use to it.
    let patience = Number.POSITIVE_INFINITY;
    for (const lease of leases) patience = Math.min(patience, lease.timings.heartbeatMs, lease.remainingMs());
    patience = Math.max(1, patience);
    for (const lease of leases) this.#due.set(lease, sent.mono + patience);
    const renewals = leases.map((lease): Renewal => {
      const { progress, progressNote } = lease.counters();
      return { fence: lease.fence, progress, ...(progressNote === undefined ? {} : { progressNote }) };
    });
    const late = Symbol("late");
    let cancel = () => {};
    const timeout = new Promise<typeof late>((resolve) => {
      cancel = clock.after(patience, () => resolve(late));
    });
    try {
      const answer = this.#options.renew(renewals);
      answer.catch(() => {}); // an answer that nobody waits for any more
      const verdicts = await Promise.race([answer, timeout]);
      if (verdicts === late) this.#doubt(leases, `no answer within ${Math.round(patience)} ms`);
      else for (const [k, lease] of leases.entries()) this.#judge(lease, verdicts[k]!, sent);
    } catch (error) {
      log("debug", "lease.renewal_failed", { error: String(error), leases: leases.length });
      this.#doubt(leases, `renewal failed: ${(error as Error).message}`);
    } finally {
      cancel();
      this.#rearm();
    }
  }

  #judge(lease: Lease, verdict: Renewed, sent: Moment): void {
    if (!this.#due.has(lease)) return; // released or lost meanwhile
    if (verdict.ok) {
      lease.renewed(sent, verdict.notes);
      this.#plan(lease, lease.timings.heartbeatMs);
      return;
    }
    const { log } = this.#options;
    log("warn", "lease.lost", { name: lease.name, token: lease.token, code: verdict.error.code });
    lease.lost(
      verdict.error.code === "TAPE_LEASE_STALLED" ? "stalled: renewed without progress" : verdict.error.message,
    );
  }

  #doubt(leases: readonly Lease[], why: string): void {
    for (const lease of leases) {
      if (!this.#due.has(lease)) continue;
      lease.doubted(why);
      if (lease.belief === "lost") lease.lost("the deadline passed without a successful renewal");
      else this.#plan(lease, Math.min(hurriedMs, lease.timings.heartbeatMs / 3));
    }
  }
}
