import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import { TurnQueue } from "../../base/turn-queue.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { Courtesy } from "./courtesy.ts";
import { isBusy } from "./database.ts";
import { GroupSession, type Session, type Witness } from "./session.ts";
import { Statements, type Times } from "./statements.ts";

/** A queued write. `work` runs inside the transaction and may be retried alone. */
interface QueuedWrite {
  readonly tenant: string | undefined;
  readonly work: (session: Session) => unknown;
  /**
   * Normally checks before it writes, so it needs no savepoint. If it fails after all, its group is retried one by one.
   */
  readonly atomic: boolean;
  readonly bytes: number;
  /** How many writes of usual cost it counts as. */
  readonly writes: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  outcome?: { readonly value: unknown } | { readonly error: unknown };
}

export interface CommitterOptions {
  readonly connect: () => DatabaseSync;
  /** The database is lost with its connection: a new connection would be an empty store under the same handle. */
  readonly volatile: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: Limits;
  /** How long to wait for another process's transaction before failing. */
  readonly busyMs: number;
  readonly times: () => Times;
  /** Forgets everything remembered about the file. */
  readonly forget: () => void;
}

/** Maximum number of writes in one transaction: a longer one would block the event loop, and with it heartbeats. */
const groupWrites = 1_000;

/**
 * The only write path. Writes that arrive in one tick of the event loop are committed together. While a commit is in
 * progress (it blocks the thread), the next ones are queued. Each has its own result: one that throws is rolled back
 * alone.
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
  /** Why it was closed, if not by a call of `close`. */
  #lost: TapeError | undefined;
  #idle: (() => void)[] = [];
  #witnesses = 0;
  /** The tenant of the latest write. */
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

  /** For readers, outside of a transaction. */
  get statements(): Statements {
    if (this.#closed) throw this.#closedError();
    return this.#statements;
  }

  /** `tenant`: the owner of the write. Writes of the store itself have none, and take turns as one more tenant. */
  submit<T>(
    tenant: string | undefined,
    work: (session: Session) => T,
    options: { atomic?: boolean; bytes?: number; writes?: number } = {},
  ): Promise<T> {
    const { atomic = false, bytes = 0, writes = 1 } = options;
    if (this.#closed) return Promise.reject(this.#closedError());
    if (!this.#queue.hasRoom(tenant, bytes)) {
      return Promise.reject(
        new TapeError("TAPE_OVERLOADED", `${this.#queue.length} writes are waiting for their commit`),
      );
    }
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ tenant, work, atomic, bytes, writes, resolve: resolve as (value: unknown) => void, reject });
      this.#schedule();
    });
  }

  /** Waits for all submitted writes, then closes the file. */
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

  /** A sleep, not a timer: with a timer an otherwise idle process could exit before its writes are committed. */
  #flushIn(ms: number): void {
    this.#scheduled = true;
    void this.#options.clock.sleep(ms).then(() => this.#flush());
  }

  #settleIdle(): void {
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** undefined: the file is busy; the queue waits and collects more writes. */
  #begin(): GroupSession | undefined {
    const { clock, busyMs, times, forget } = this.#options;
    try {
      if (!this.#db.isOpen) this.#connect(); // reopening it failed when the connection broke
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
    // Read inside the transaction: unchanged means that no other connection has committed since our last transaction.
    const version = this.#statements.dataVersion();
    const foreign = version !== this.#version;
    if (foreign) {
      forget();
      if (this.#version !== undefined) this.#courtesy.seen();
    }
    this.#version = version;
    return new GroupSession(this.#db, this.#statements, times(), foreign);
  }

  #failAll(error: TapeError): undefined {
    const group = this.#queue.drain();
    this.#busySince = undefined;
    for (const item of group) item.reject(error);
    this.#settleIdle();
    return undefined;
  }

  #commitGroup(session: GroupSession): void {
    const { clock } = this.#options;
    const boundMs = this.#courtesy.workBoundMs();
    const shared = boundMs !== Number.POSITIVE_INFINITY;
    const startedAt = shared ? clock.mono() : 0;
    const all = shared ? undefined : this.#queue.takeAll(groupWrites);
    const group = all ?? [];
    try {
      if (all === undefined) this.#runInTurn(session, group, shared ? startedAt + boundMs : undefined);
      else this.#runAll(session, all);
      this.#addWitness(session, group);
    } catch (error) {
      session.drop();
      this.#abandon();
      // An unexpected error in an item that should have checked first. It must not affect the others: retry each alone.
      if (group.length === 1) group[0]!.reject(error);
      else this.#eachAlone(group);
      return;
    }
    const workedMs = shared ? clock.mono() - startedAt : 0;
    try {
      this.#statements.commit();
    } catch (error) {
      if (!this.#landed(error, session, group)) return;
    }
    if (shared) this.#courtesy.leave(workedMs, clock.mono() - startedAt);
    this.commits++;
    for (const fn of session.after) fn();
    for (const item of group) {
      if ("error" in item.outcome!) item.reject(item.outcome.error);
      else item.resolve(item.outcome!.value);
    }
  }

  #runAll(session: GroupSession, all: readonly QueuedWrite[]): void {
    this.#noteTenant(all[0]?.tenant);
    for (const item of all) this.#runItem(session, item);
  }

  /** Runs items in turn, up to both bounds but at least one, whatever its size. `group` receives the items taken. */
  #runInTurn(session: GroupSession, group: QueuedWrite[], until: number | undefined): void {
    for (let writes = 0; writes < groupWrites; ) {
      const item = this.#queue.shift();
      if (item === undefined) return;
      group.push(item);
      writes += item.writes;
      this.#noteTenant(item.tenant);
      this.#runItem(session, item);
      if (until !== undefined && this.#options.clock.mono() >= until) return;
    }
  }

  #noteTenant(tenant: string | undefined): void {
    if (tenant === undefined || tenant === this.#tenant) return;
    if (this.#tenant !== undefined) this.#courtesy.mixed();
    this.#tenant = tenant;
  }

  #runItem(session: GroupSession, item: QueuedWrite): void {
    const mark = session.mark();
    if (!item.atomic) this.#statements.savepoint();
    try {
      item.outcome = { value: item.work(session) };
      session.keep();
    } catch (error) {
      session.drop(mark);
      if (!item.atomic) this.#statements.rollbackTo();
      else if (!(error instanceof TapeError) || session.hasChangedSince(mark)) throw error;
      item.outcome = { error };
    }
    if (!item.atomic) this.#statements.release();
  }

  /** A group without a record that only it could write inserts a row as proof of its commit. */
  #addWitness(session: GroupSession, group: readonly QueuedWrite[]): void {
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
   * COMMIT failed, which does not mean that nothing was committed. A new connection shows what the file holds: the
   * group's witness exists, or it never will, because the old connection is closed.
   */
  #landed(error: unknown, session: GroupSession, group: readonly QueuedWrite[]): boolean {
    this.#disconnect();
    this.#options.forget();
    if (this.#options.volatile) return this.#lose(error, session, group);
    try {
      this.#connect();
      if (this.#sees(session.witness, session.times)) return true;
      session.drop();
      for (const item of group) item.reject(unreachable(error));
    } catch (reopenError) {
      session.drop();
      const message = "the commit failed and the file could not be reopened to check whether it was written";
      for (const item of group) item.reject(new TapeError("TAPE_OUTCOME_UNKNOWN", message, {}, reopenError));
    }
    return false;
  }

  /** Nothing is left that shows whether the commit landed: every queued write is rejected with the reason. */
  #lose(cause: unknown, session: GroupSession, group: readonly QueuedWrite[]): false {
    const message = `a commit failed (${(cause as Error).message}): the in-memory store is closed and its data is lost`;
    this.#lost = new TapeError("TAPE_STORE_CLOSED", message, {}, cause);
    this.#closed = true;
    session.drop();
    for (const item of [...group, ...this.#queue.drain()]) item.reject(this.#lost);
    return false;
  }

  #closedError(): TapeError {
    return this.#lost ?? new TapeError("TAPE_STORE_CLOSED", "this store handle is closed");
  }

  /** Both may fail on a broken connection. Closing is tried even if the rollback fails: it frees the file. */
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

/** Witnesses of groups without records are kept for an hour; they are checked within milliseconds. */
const witnessMs = 3_600_000;

function unreachable(cause: unknown): TapeError {
  return new TapeError("TAPE_STORE_UNREACHABLE", `nothing was written: ${(cause as Error).message}`, {}, cause);
}
