import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";
import type { DriveHandle, Suspicion } from "./core/handle.ts";

export interface SuspectsOptions {
  readonly clock: Clock;
  /** A run that kills its process usually does so at once. A suspect that survives this long delays no other. */
  readonly graceMs: number;
  /** Drives in progress, without the suspects that are queued here. */
  readonly others: () => readonly Promise<unknown>[];
  /** Called when there is capacity again. */
  readonly onCapacity: () => void;
}

/** The longest time that a suspect delays the others in the queue. */
export const maxGraceMs = 5_000;
/** Crashes of a process that tested only this run, without progress in between, before the run becomes STUCK. */
const maxCrashes = 5;
/** From this crash on a run is driven entirely alone, so that a crash of another run never makes it STUCK. */
const exclusiveFrom = 3;
/** Suspects that were found together are queued together, so that the one to be tested alone comes first. */
const collectMs = 250;
/** Group size after one recovery, as one of them may be the killer. Then a quarter of it, then one at a time. */
const maxConcurrentSuspects = 16;
const sizeFor = (recoveries: number): number =>
  Math.max(1, Math.floor(maxConcurrentSuspects / 4 ** Math.max(0, recoveries - 1)));

interface Member {
  /** The largest group in which it may be tested, itself included. */
  readonly size: number;
  readonly exclusive: boolean;
  readonly begin: () => void;
}

/**
 * Runs whose holder crashed. At most 16 are driven at once until each makes progress, which clears it. After a few
 * seconds without a crash a suspect lets others start beside it. The more often a run was recovered without progress,
 * the smaller its group; only a crash in a group of one counts. Other runs start at any time, except while a run is
 * tested entirely alone.
 */
export class Suspects {
  readonly #options: SuspectsOptions;
  readonly #queue: Member[] = [];
  readonly #tested = new Set<Member>();
  #active = 0;
  /** Suspects beside which nothing else may start. */
  readonly #exclusive = new Set<Member>();
  #collecting = false;

  constructor(options: SuspectsOptions) {
    this.#options = options;
  }

  /** A suspect is being driven alone: nothing else may start. */
  get solo(): boolean {
    return this.#exclusive.size > 0;
  }

  /** How many more suspects may be claimed now. More would only crash together with a run that kills its process. */
  get capacity(): number {
    return Math.max(0, maxConcurrentSuspects - this.#active);
  }

  /** Admits one suspect that has been claimed. */
  next(): Suspicion {
    this.#active++;
    let member: Member | undefined;
    let open = true;
    const cancels: (() => void)[] = [];
    const clear = (): void => {
      if (!open) return;
      open = false;
      this.#active--;
      for (const cancel of cancels) cancel();
      if (member !== undefined) this.#leave(member);
      this.#options.onCapacity();
    };
    const { clock, graceMs } = this.#options;
    const later = (work: () => void): void => void cancels.push(clock.after(graceMs, work));
    const check = async (drive: DriveHandle): Promise<boolean> => {
      const { recoveries, crashes } = drive.history;
      const size = sizeFor(recoveries);
      const count = crashes === undefined ? 0 : crashes + 1;
      if (size === 1 && count >= maxCrashes) {
        await drive.markStuck(crashError(drive, count));
        return true;
      }
      const exclusive = size === 1 && count >= exclusiveFrom;
      suspicion.solo = true;
      await new Promise<void>((begin) => {
        member = { size, exclusive, begin };
        this.#enter(member);
      });
      if (drive.finished) return true; // its lease expired in the queue, or the process is draining
      suspicion.solo = exclusive;
      if (size > 1) {
        later(clear);
        return false;
      }
      if (exclusive && !(await this.#quiet())) {
        suspicion.solo = false;
        later(clear);
        this.#admitOthers(member!); // beside others a crash may be theirs, so it does not count
        return false;
      }
      await drive.journal.append([{ kind: "run.suspected", data: { crashes: count } }]);
      // From then on others run beside it, so a crash must not count.
      later(() => drive.journal.enqueue([{ kind: "run.suspected", data: { crashes: 0 } }], clear, () => {}));
      return false;
    };
    const suspicion: Suspicion = { check, clear, solo: false };
    return suspicion;
  }

  #enter(member: Member): void {
    // Exclusive tests first, while nothing else runs yet; then the larger groups, which finish soonest.
    const rank = ({ exclusive, size }: Member): number => (exclusive ? Number.POSITIVE_INFINITY : size);
    const before = this.#queue.findIndex((other) => rank(other) < rank(member));
    this.#queue.splice(before < 0 ? this.#queue.length : before, 0, member);
    if (member.size < maxConcurrentSuspects && this.#tested.size === 0 && !this.#collecting) {
      this.#collecting = true;
      this.#options.clock.after(collectMs, () => {
        this.#collecting = false;
        this.#advance();
      });
    }
    this.#advance();
  }

  #leave(member: Member): void {
    const at = this.#queue.indexOf(member);
    if (at >= 0) {
      this.#queue.splice(at, 1);
      member.begin(); // its drive has finished; this lets it return
    }
    if (this.#tested.delete(member)) this.#admitOthers(member);
    this.#advance();
  }

  #admitOthers(member: Member): void {
    if (this.#exclusive.delete(member)) this.#options.onCapacity();
  }

  #advance(): void {
    for (;;) {
      const at = this.#collecting ? this.#queue.findIndex(({ size }) => size === maxConcurrentSuspects) : 0;
      const member = this.#queue[at];
      if (member === undefined) return;
      const maxSize = Math.min(member.size, ...[...this.#tested].map(({ size }) => size));
      if (this.#tested.size >= maxSize) return;
      this.#queue.splice(at, 1);
      this.#tested.add(member);
      if (member.exclusive) this.#exclusive.add(member);
      member.begin();
    }
  }

  /** Waits up to `graceMs` until no other drive is in progress; false: there still is one. */
  async #quiet(): Promise<boolean> {
    const enough = new AbortController();
    let late = false;
    const patience = this.#options.clock.sleep(this.#options.graceMs, enough.signal).then(() => {
      late = true;
    });
    for (;;) {
      const others = this.#options.others();
      if (others.length === 0 || late) break;
      await Promise.race([Promise.race(others), patience]);
    }
    enough.abort();
    return this.#options.others().length === 0;
  }
}

function crashError(drive: DriveHandle, crashes: number): TapeError {
  const { workflow, id } = drive.history.created;
  const message = `the process crashed ${crashes} times while it drove only this run of ${workflow}, without progress since record ${drive.history.progressAt}`;
  return new TapeError("TAPE_RUN_STUCK", message, { run: id, crashes });
}
