import type { Clock } from "../../base/clock.ts";
import type { TapeError } from "../../model/errors.ts";
import type { StepContext } from "../../sdk/context.ts";
import type { DriveHandle } from "../core/handle.ts";

/** One attempt, for the code that runs it. It reports one outcome; whatever follows a time-out is dropped. */
export interface StepAttempt<T> {
  readonly context: StepContext;
  /** It has an outcome. */
  readonly over: boolean;
  returned(value: T): void;
  threw(thrown: unknown): void;
  /** The attempt itself has written the record of its result. */
  committed(): void;
  /** No process knows the outcome, or another drive will: this drive is over. */
  lost(error: unknown): void;
  /** From here until `release` the commit decides, and a time-out waits for it. false: it has timed out already. */
  hold(): boolean;
  release(): void;
  /** Throws if the time is over. */
  assertInTime(): void;
  /** Called at a time-out. */
  onTimeout: (error: TapeError) => void;
}

interface AttemptOutcomes<T> extends Pick<StepAttempt<T>, "returned" | "threw" | "committed" | "lost"> {
  readonly context: (timeout: AbortSignal | undefined) => StepContext;
  readonly timedOut: () => TapeError;
}

/**
 *   running ──returned | threw | committed | lost──▶ over
 *      │  ──time-out──▶ over, as thrown
 *      └──hold──▶ held ──release──▶ running          a time-out while held takes effect with the release
 */
export class CurrentAttempt<T> implements StepAttempt<T> {
  readonly #outcomes: AttemptOutcomes<T>;
  readonly #timeout = new AbortController();
  #limited = false;
  #over = false;
  #held = false;
  #late: TapeError | undefined;
  #finish: () => void = () => {};
  onTimeout: (error: TapeError) => void = () => {};

  constructor(outcomes: AttemptOutcomes<T>) {
    this.#outcomes = outcomes;
  }

  get context(): StepContext {
    return this.#outcomes.context(this.#limited ? this.#timeout.signal : undefined);
  }

  get over(): boolean {
    return this.#over;
  }

  /** A declared time-out is a declared wait: until then the lease needs no other progress. */
  limit(
    timeoutMs: number | undefined,
    lease: Pick<DriveHandle["options"]["lease"], "declareWait">,
    clock: Pick<Clock, "after">,
  ): void {
    if (timeoutMs === undefined) return;
    this.#limited = true;
    const endWait = lease.declareWait();
    const cancel = clock.after(timeoutMs, () => {
      this.#late = this.#outcomes.timedOut();
      this.#timeout.abort(this.#late);
      if (!this.#held) this.#timeOut(this.#late);
    });
    this.#finish = () => {
      cancel();
      endWait();
    };
  }

  #timeOut(error: TapeError): void {
    this.onTimeout(error);
    this.threw(error);
  }

  #once(settle: () => void): void {
    if (this.#over) return;
    this.#over = true;
    this.#finish();
    settle();
  }

  returned(value: T): void {
    this.#once(() => this.#outcomes.returned(value));
  }

  threw(thrown: unknown): void {
    this.#once(() => this.#outcomes.threw(thrown));
  }

  committed(): void {
    this.#once(() => this.#outcomes.committed());
  }

  lost(error: unknown): void {
    this.#once(() => this.#outcomes.lost(error));
  }

  hold(): boolean {
    this.#held = !this.#over;
    return this.#held;
  }

  release(): void {
    this.#held = false;
    if (this.#late !== undefined && !this.#over) this.#timeOut(this.#late);
  }

  assertInTime(): void {
    if (this.#late !== undefined) throw this.#late;
  }
}
