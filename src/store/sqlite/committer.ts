import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import { TurnQueue } from "../../base/turn-queue.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { Courtesy } from "./courtesy.ts";
import { isBusy, Statements, type Times } from "./database.ts";
import { Group, type Session, type Witness } from "./session.ts";

/** One write waiting for its turn. `work` runs inside the transaction and may be run again alone. */
interface QueuedWrite {
  readonly tenant: string | undefined;
  readonly work: (session: Session) => unknown;
  /** Checks before it writes, as a rule: no savepoint to undo it. If it is refused after all, each of its group alone. */
  readonly atomic: boolean;
  readonly bytes: number;
  /** How many writes of usual cost it stands for. */
  readonly writes: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  outcome?: { readonly value: unknown } | { readonly error: unknown };
}

export interface CommitterOptions {
  readonly connect: () => DatabaseSync;
  /** The database is gone with its connection: a new one would be an empty store under the same handle. */
  readonly volatile: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: Limits;
  /** How long to wait for another process's transaction before giving up. */
  readonly busyMs: number;
  readonly times: () => Times;
  /** Whatever was remembered of the file is void. */
  readonly forget: () => void;
}

/** One transaction takes at most so many writes: a longer one would hold up the event loop, and with it heartbeats. */
const groupWrites = 1_000;

/**
 * The only write path. Writes that arrive in one turn of the event loop are committed together; while a commit is under
 * way (it blocks the thread) the next ones gather. Each keeps its own verdict: one that throws is undone alone.
 *
 *   idle ──submit──▶ scheduled ──▶ committing ──▶ idle | scheduled (more arrived) | waiting (file busy) ──▶ scheduled
 */
export class Committer {
  readonly #options: CommitterOptions;
  #db: DatabaseSync;
  #statements: Statements;
  readonly #queue: TurnQueue<QueuedWrite>;
  readonly #courtesy: Courtesy;
  #scheduled = false;
  #busySince: number | undefined;
  #version: unknown;
  #closed = false;
  /** Why it was closed, if nobody asked for it. */
  #lost: TapeError | undefined;
  #idle: (() => void)[] = [];
  #witnesses = 0;
  /** Whose the latest write was. */
  #tenant: string | undefined;
  commits = 0;

  constructor(options: CommitterOptions) {
    this.#options = options;
    this.#queue = new TurnQueue<QueuedWrite>(options.limits);
    this.#courtesy = new Courtesy(options.clock, options.random);
    this.#db = options.connect();
    this.#statements = new Statements(this.#db);
  }

  get db(): DatabaseSync {
    return this.#db;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** For readers, outside any transaction. */
  get statements(): Statements {
    if (this.#closed) throw this.#closedError();
    return this.#statements;
  }

  /** `tenant`: whose write it is; those of the store itself have none, and take their turns as one more tenant. */
  submit<T>(
    tenant: string | undefined,
    work: (session: Session) => T,
    options: { atomic?: boolean; bytes?: number; writes?: number } = {},
  ): Promise<T> {
    const { atomic = false, bytes = 0, writes = 1 } = options;
    if (this.#closed) return Promise.reject(this.#closedError());
    if (!this.#queue.hasRoom(tenant, bytes)) {
      return Promise.reject(new TapeError("TAPE_OVERLOADED", `${this.#queue.length} writes wait for their commit`));
    }
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ tenant, work, atomic, bytes, writes, resolve: resolve as (value: unknown) => void, reject });
      this.#schedule();
    });
  }

  /** Waits for what has been submitted, then closes the file. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#queue.length > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
    this.#db.close();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.clock.immediate(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#queue.length === 0) {
      this.#settleIdle();
      return;
    }
    const restMs = this.#courtesy.restMs();
    if (restMs > 0) {
      this.#flushIn(restMs);
      return;
    }
    const session = this.#begin();
    if (session === undefined) return;
    this.#commitGroup(session);
    if (this.#queue.length > 0) this.#schedule();
    else this.#settleIdle();
  }

  /** A sleep, not a timer: that would let a process end that has nothing else to do, and its writes with it. */
  #flushIn(ms: number): void {
    this.#scheduled = true;
    void this.#options.clock.sleep(ms).then(() => this.#flush());
  }

  #settleIdle(): void {
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** undefined: the file is busy; the queue waits and gathers more. */
  #begin(): Group | undefined {
    const { clock, busyMs, times, forget } = this.#options;
    try {
      if (!this.#db.isOpen) this.#connect(); // it could not be opened again when it broke
      this.#statements.begin();
    } catch (error) {
      if (!isBusy(error)) return this.#failAll(unreachable(error));
      this.#busySince ??= clock.mono();
      const busyFor = clock.mono() - this.#busySince;
      if (busyFor > busyMs) {
        const message = `another process kept the file locked for ${busyMs} ms`;
        return this.#failAll(new TapeError("TAPE_STORE_BUSY", message, {}, error));
      }
      this.#flushIn(this.#courtesy.busy(busyFor));
      return undefined;
    }
    this.#busySince = undefined;
    // Read inside the transaction: unchanged means that nobody else has committed since our own last one.
    const version = this.#statements.dataVersion();
    const foreign = version !== this.#version;
    if (foreign) {
      forget();
      if (this.#version !== undefined) this.#courtesy.seen();
    }
    this.#version = version;
    return new Group(this.#db, this.#statements, times(), foreign);
  }

  #failAll(error: TapeError): undefined {
    const group = this.#queue.drain();
    this.#busySince = undefined;
    for (const item of group) item.reject(error);
    this.#settleIdle();
    return undefined;
  }

  #commitGroup(session: Group): void {
    const { clock } = this.#options;
    const boundMs = this.#courtesy.workBoundMs();
    const shared = boundMs !== Number.POSITIVE_INFINITY;
    const begun = shared ? clock.mono() : 0;
    const all = shared ? undefined : this.#queue.takeAll(groupWrites);
    const group = all ?? [];
    try {
      if (all === undefined) this.#runInTurn(session, group, shared ? begun + boundMs : undefined);
      else this.#runAll(session, all);
      this.#bearWitness(session, group);
    } catch (error) {
      session.drop();
      this.#abandon();
      // Something unforeseen in an item that meant to check first. Nobody is harmed by a neighbour: each alone.
      if (group.length === 1) group[0]!.reject(error);
      else this.#eachAlone(group);
      return;
    }
    const workedMs = shared ? clock.mono() - begun : 0;
    try {
      this.#statements.commit();
    } catch (error) {
      if (!this.#landed(error, session, group)) return;
    }
    if (shared) this.#courtesy.leave(workedMs, clock.mono() - begun);
    this.commits++;
    for (const fn of session.after) fn();
    for (const item of group) {
      if ("error" in item.outcome!) item.reject(item.outcome.error);
      else item.resolve(item.outcome!.value);
    }
  }

  #runAll(session: Group, all: readonly QueuedWrite[]): void {
    this.#noticeTenant(all[0]?.tenant);
    for (const item of all) this.#runItem(session, item);
  }

  /** What is next in turn, up to both bounds; one item at least, however much it is. What has been taken is in `group`. */
  #runInTurn(session: Group, group: QueuedWrite[], until: number | undefined): void {
    for (let writes = 0; writes < groupWrites; ) {
      const item = this.#queue.shift();
      if (item === undefined) return;
      group.push(item);
      writes += item.writes;
      this.#noticeTenant(item.tenant);
      this.#runItem(session, item);
      if (until !== undefined && this.#options.clock.mono() >= until) return;
    }
  }

  #noticeTenant(tenant: string | undefined): void {
    if (tenant === undefined || tenant === this.#tenant) return;
    if (this.#tenant !== undefined) this.#courtesy.mixed();
    this.#tenant = tenant;
  }

  #runItem(session: Group, item: QueuedWrite): void {
    const mark = session.mark();
    if (!item.atomic) this.#statements.savepoint();
    try {
      item.outcome = { value: item.work(session) };
      session.keep();
    } catch (error) {
      session.drop(mark);
      if (!item.atomic) this.#statements.undo();
      else if (!(error instanceof TapeError) || session.hasChangedSince(mark)) throw error;
      item.outcome = { error };
    }
    if (!item.atomic) this.#statements.release();
  }

  /** A group without a record that only it could write leaves a row that says it was here. */
  #bearWitness(session: Group, group: readonly QueuedWrite[]): void {
    if (session.witness !== undefined || group.every((item) => "error" in item.outcome!)) return;
    const id = this.#options.random.bits63();
    session.statements.run("witness.create", { id }, session.times);
    session.witness = { id };
    if (++this.#witnesses % 1_000 === 0) session.statements.run("witness.purge", { olderMs: witnessMs }, session.times);
  }

  #eachAlone(group: readonly QueuedWrite[]): void {
    for (const item of group) {
      this.submit(item.tenant, item.work, { bytes: item.bytes, writes: item.writes }).then(item.resolve, item.reject);
    }
  }

  #abandon(): void {
    if (this.#db.isTransaction) this.#db.exec("rollback");
    this.#options.forget();
  }

  /**
   * COMMIT failed, which does not say that nothing was committed. A new connection sees what the file holds: the witness
   * that the group wrote is there, or it never will be, because the old connection is closed.
   */
  #landed(error: unknown, session: Group, group: readonly QueuedWrite[]): boolean {
    this.#disconnect();
    this.#options.forget();
    if (this.#options.volatile) return this.#lose(error, session, group);
    try {
      this.#connect();
      if (this.#sees(session.witness, session.times)) return true;
      session.drop();
      for (const item of group) item.reject(unreachable(error));
    } catch (again) {
      session.drop();
      const message = "the commit failed and the file could not be opened again to see whether it landed";
      for (const item of group) item.reject(new TapeError("TAPE_OUTCOME_UNKNOWN", message, {}, again));
    }
    return false;
  }

  /** Nothing is left to ask whether the commit landed: every write that waits is refused with the reason. */
  #lose(cause: unknown, session: Group, group: readonly QueuedWrite[]): false {
    const message = `a commit failed (${(cause as Error).message}): the store in memory is closed, and what it held is gone`;
    this.#lost = new TapeError("TAPE_STORE_CLOSED", message, {}, cause);
    this.#closed = true;
    session.drop();
    for (const item of [...group, ...this.#queue.drain()]) item.reject(this.#lost);
    return false;
  }

  #closedError(): TapeError {
    return this.#lost ?? new TapeError("TAPE_STORE_CLOSED", "this store handle is closed");
  }

  /** Both may fail on a broken connection, and closing must be tried whatever the rollback says: it frees the file. */
  #disconnect(): void {
    try {
      if (this.#db.isTransaction) this.#db.exec("rollback");
    } catch {}
    try {
      this.#db.close();
    } catch {}
  }

  #connect(): void {
    this.#db = this.#options.connect();
    this.#statements = new Statements(this.#db);
    this.#version = undefined;
  }

  #sees(witness: Witness | undefined, times: Times): boolean {
    if (witness === undefined) return false;
    if ("id" in witness) return this.#statements.run("witness.find", witness, times).count > 0;
    const { journal, seq, token } = witness;
    const { rows } = this.#statements.run("journal.page", { journal, from: seq, limit: 1, tenant: null }, times);
    return rows[0]?.seq === seq && rows[0].token === String(token);
  }
}

/** Witnesses of groups without records are kept for an hour; one is asked after within milliseconds. */
const witnessMs = 3_600_000;

function unreachable(cause: unknown): TapeError {
  return new TapeError("TAPE_STORE_UNREACHABLE", `nothing was written: ${(cause as Error).message}`, {}, cause);
}
