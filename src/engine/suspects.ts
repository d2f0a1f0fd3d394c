import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";
import type { DriveHandle, Suspicion } from "./core/handle.ts";

export interface SuspectsOptions {
  readonly clock: Clock;
  /** What kills its process does so at once as a rule: a suspect that lives so long is at work and holds up no other. */
  readonly besideMs: number;
  /** Drives under way besides those that wait for their turn here. */
  readonly others: () => readonly Promise<unknown>[];
  /** There is room again. */
  readonly onRoom: () => void;
}

/** The longest time that a suspect holds up others that wait for their turn. */
export const maxGraceMs = 5_000;
/** Crashes of a process that tested nothing but this run, without progress in between, before a person must look. */
const maxCrashes = 5;
/** From this crash on a run is tested with nothing at all beside it: a neighbour's crash must never stick it. */
const exclusiveFrom = 3;
/** Those that were found together come together to the line, so that the one to be tested alone is first. */
const gatherMs = 250;
/** Recovered once: so many may have to be told apart if one of them kills. Then a quarter of it, then each by itself. */
const maxConcurrentSuspects = 16;
const sizeFor = (recoveries: number): number =>
  Math.max(1, Math.floor(maxConcurrentSuspects / 4 ** Math.max(0, recoveries - 1)));

interface Member {
  /** How many may be tested at once while it is among them, itself included. */
  readonly size: number;
  readonly exclusive: boolean;
  readonly begin: () => void;
}

/**
 * Runs that were held by a process that vanished. They are tested in small groups: each is driven until it has moved on,
 * which proves it innocent, or has lived for a few seconds, which lets others have their turn beside it. The more often a
 * run was recovered without moving on, the smaller its group; only a crash in a group of one counts. Runs that nobody
 * suspects begin at any time, but for the moments in which a run is tested for the last times.
 */
export class Suspects {
  readonly #options: SuspectsOptions;
  readonly #queue: Member[] = [];
  readonly #tested = new Set<Member>();
  #active = 0;
  /** Those among them beside which nothing may begin. */
  readonly #closed = new Set<Member>();
  #gathering = false;

  constructor(options: SuspectsOptions) {
    this.#options = options;
  }

  /** A suspect is being driven with nothing beside it: nothing else may begin. */
  get solo(): boolean {
    return this.#closed.size > 0;
  }

  /** How many more may be acquired now: beyond that, whoever kills its process would only take more with it. */
  get capacity(): number {
    return Math.max(0, maxConcurrentSuspects - this.#active);
  }

  /** One has been acquired. */
  next(): Suspicion {
    this.#active++;
    let member: Member | undefined;
    let open = true;
    const cancels: (() => void)[] = [];
    const lifted = (): void => {
      if (!open) return;
      open = false;
      this.#active--;
      for (const cancel of cancels) cancel();
      if (member !== undefined) this.#leave(member);
      this.#options.onRoom();
    };
    const { clock, besideMs } = this.#options;
    const later = (work: () => void): void => void cancels.push(clock.after(besideMs, work));
    const raised = async (drive: DriveHandle): Promise<boolean> => {
      const { recoveries, crashes } = drive.history;
      const size = sizeFor(recoveries);
      const count = crashes === undefined ? 0 : crashes + 1;
      if (size === 1 && count >= maxCrashes) {
        await drive.markStuck(poisonous(drive, count));
        return true;
      }
      const exclusive = size === 1 && count >= exclusiveFrom;
      suspicion.solo = true;
      await new Promise<void>((begin) => {
        member = { size, exclusive, begin };
        this.#enter(member);
      });
      if (drive.finished) return true; // its lease ran out in the line, or the process is draining
      suspicion.solo = exclusive;
      if (size > 1) {
        later(lifted);
        return false;
      }
      if (exclusive && !(await this.#quiet())) {
        suspicion.solo = false;
        later(lifted);
        this.#reopen(member!); // with company its crash could be another's: it does not count
        return false;
      }
      await drive.journal.append([{ kind: "run.suspected", data: { crashes: count } }]);
      // A crash from then on may be a neighbour's: it must not count.
      later(() => drive.journal.enqueue([{ kind: "run.suspected", data: { crashes: 0 } }], lifted, () => {}));
      return false;
    };
    const suspicion: Suspicion = { check: raised, clear: lifted, solo: false };
    return suspicion;
  }

  #enter(member: Member): void {
    // The last test first, while nothing is at work yet; then the larger groups, which are through soonest.
    const rank = ({ exclusive, size }: Member): number => (exclusive ? Number.POSITIVE_INFINITY : size);
    const before = this.#queue.findIndex((other) => rank(other) < rank(member));
    this.#queue.splice(before < 0 ? this.#queue.length : before, 0, member);
    if (member.size < maxConcurrentSuspects && this.#tested.size === 0 && !this.#gathering) {
      this.#gathering = true;
      this.#options.clock.after(gatherMs, () => {
        this.#gathering = false;
        this.#advance();
      });
    }
    this.#advance();
  }

  #leave(member: Member): void {
    const at = this.#queue.indexOf(member);
    if (at >= 0) {
      this.#queue.splice(at, 1);
      member.begin(); // its drive is over, and hears so
    }
    if (this.#tested.delete(member)) this.#reopen(member);
    this.#advance();
  }

  #reopen(member: Member): void {
    if (this.#closed.delete(member)) this.#options.onRoom();
  }

  #advance(): void {
    for (;;) {
      const at = this.#gathering ? this.#queue.findIndex(({ size }) => size === maxConcurrentSuspects) : 0;
      const member = this.#queue[at];
      if (member === undefined) return;
      const most = Math.min(member.size, ...[...this.#tested].map(({ size }) => size));
      if (this.#tested.size >= most) return;
      this.#queue.splice(at, 1);
      this.#tested.add(member);
      if (member.exclusive) this.#closed.add(member);
      member.begin();
    }
  }

  /** Whether nothing else is under way, or soon no more. */
  async #quiet(): Promise<boolean> {
    const enough = new AbortController();
    let late = false;
    const patience = this.#options.clock.sleep(this.#options.besideMs, enough.signal).then(() => {
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

function poisonous(drive: DriveHandle, crashes: number): TapeError {
  const { workflow, id } = drive.history.created;
  const message = `the process died ${crashes} times while it tested nothing but this run of ${workflow}, without progress since record ${drive.history.progressAt}`;
  return new TapeError("TAPE_RUN_STUCK", message, { run: id, crashes });
}
