import type { Term } from "../model/lease.ts";
import type { TermReason } from "../model/records.ts";

/** Why a holder lost its lease: another term began, it made no progress, or no renewal arrived in time. */
export type LossReason = "fenced" | "stalled" | "expired";

/** Reasons of terms that ended another holder's term by force. */
export const takingReasons: ReadonlySet<TermReason> = new Set(["manual", "timeout", "stalled", "recovery"]);

/** A number of terms. */
export interface LeaseCount {
  readonly reactor: string;
  readonly reason: string;
  readonly count: number;
}

/** The terms that the keepers of a process were granted and lost, by reactor and reason. */
export class LeaseCounts {
  readonly #acquires = new ReasonCounts();
  readonly #takeovers = new ReasonCounts();
  readonly #losses = new ReasonCounts();

  granted(reactor: string, { reason, takenFrom }: Term): void {
    this.#acquires.add(reactor, reason);
    if (takenFrom !== undefined || takingReasons.has(reason)) this.#takeovers.add(reactor, reason);
  }

  lost(reactor: string, reason: LossReason): void {
    this.#losses.add(reactor, reason);
  }

  get acquires(): readonly LeaseCount[] {
    return this.#acquires.list;
  }

  get takeovers(): readonly LeaseCount[] {
    return this.#takeovers.list;
  }

  get losses(): readonly LeaseCount[] {
    return this.#losses.list;
  }
}

class ReasonCounts {
  readonly #counts = new Map<string, Map<string, number>>();

  add(reactor: string, reason: string): void {
    let reasons = this.#counts.get(reactor);
    if (reasons === undefined) {
      reasons = new Map();
      this.#counts.set(reactor, reasons);
    }
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }

  get list(): readonly LeaseCount[] {
    return [...this.#counts].flatMap(([reactor, reasons]) =>
      [...reasons].map(([reason, count]) => ({ reactor, reason, count })),
    );
  }
}
