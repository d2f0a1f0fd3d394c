import type { Clock } from "../../../base/clock.ts";
import type { Log } from "../../../base/log.ts";
import type { Random } from "../../../base/random.ts";
import { errorFields } from "../../../base/reason.ts";
import { TapeError } from "../../../model/errors.ts";
import type { AuditInfo, MovedTenant } from "../../contract/store.ts";
import type { ShardAccess, ShardSession } from "./access.ts";
import { clearTenant, compareTenant, copyTenant } from "./copy.ts";
import { trustMs } from "./directory.ts";
import * as stages from "./stages.ts";

export interface MoveDeps {
  readonly access: (shard: number) => ShardAccess;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

export interface MoveRequest {
  readonly tenant: string;
  readonly target: number;
  readonly audit: AuditInfo;
  /** Records the request in the tenant's audit log, before the tenant is paused. */
  readonly record: () => Promise<void>;
}

interface MoveRow {
  readonly source: number;
  readonly target: number;
  readonly phase: "COPYING" | "CLEARING";
}

/** Longer than any process trusts what it has read about the tenant. */
const announceMs = trustMs + 500;

/** A server notices the end of a killed mover within this time, unless the network hides it. */
const lockMs = 5_000;
const lockPollMs = 100;

/**
 * Moves a tenant. Killed at any line and repeated, it completes. Until the directory names the new shard an error rolls
 * it back; from then on it can only be completed.
 *
 *   HERE ──announce──▶ LEAVING ──pause──▶ MOVING ──the directory names the new shard──▶ GONE, rows deleted
 *                                      new shard: ARRIVING, rows copied and compared ──▶ HERE
 */
export function moveTenant(deps: MoveDeps, request: MoveRequest): Promise<MovedTenant> {
  const { tenant } = request;
  return underLock(deps, tenant, async (directory) => {
    const mover = deps.random.uuid();
    const startedAt = deps.clock.mono();
    const row = await begin(directory, request, mover);
    if (row === undefined) return { tenant, moved: false, rows: 0, pausedMs: 0 };
    const { source, target } = row;
    return deps.access(source).session((from) =>
      deps.access(target).session(async (to) => {
        const move = new Move(deps, { tenant, mover, directory, from, to });
        await stages.adoptState(from, tenant, mover);
        if (row.phase === "CLEARING") await stages.adoptState(to, tenant, mover);
        const copied = row.phase === "COPYING" ? await move.copyOrRollBack() : undefined;
        await move.finish();
        deps.log("info", "shard.moved", { tenant, source, target, ms: Math.round(deps.clock.mono() - startedAt) });
        return { tenant, moved: true, rows: copied?.rows ?? 0, pausedMs: copied?.pausedMs ?? 0 };
      }),
    );
  });
}

/** Gives a move up that has not taken effect yet: the tenant stays where it is. */
export function cancelMove(deps: MoveDeps, tenant: string): Promise<boolean> {
  return underLock(deps, tenant, async (directory) => {
    const row = await rowOf(directory, tenant);
    if (row === undefined) return false;
    if (row.phase === "CLEARING")
      throw new TapeError(
        "TAPE_SHARD_REFUSED",
        "the tenant is on its new shard already: repeat the move to complete it",
      );
    const mover = deps.random.uuid();
    await directory.rows("update tape.shard_moves set mover = $2 where tenant = $1", [tenant, mover]);
    return deps.access(row.source).session(async (from) => {
      await stages.adoptState(from, tenant, mover);
      await rollBack({ tenant, mover, directory, from });
      return true;
    });
  });
}

interface Parts {
  readonly tenant: string;
  readonly mover: string;
  readonly directory: ShardSession;
  readonly from: ShardSession;
  readonly to: ShardSession;
}

class Move {
  readonly #deps: MoveDeps;
  readonly #parts: Parts;

  constructor(deps: MoveDeps, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  async copyOrRollBack(): Promise<{ readonly rows: number; readonly pausedMs: number }> {
    try {
      return await this.#copy();
    } catch (error) {
      // Not if another process has taken the move over: then nothing of it is ours.
      await rollBack(this.#parts).catch((cause: unknown) => {
        this.#deps.log("warn", "shard.move_unfinished", { tenant: this.#parts.tenant, ...errorFields(cause) });
      });
      throw error;
    }
  }

  async #copy(): Promise<{ readonly rows: number; readonly pausedMs: number }> {
    const { clock } = this.#deps;
    const { tenant, mover, from, to, directory } = this.#parts;
    const arriving = (session: ShardSession) => stages.holdState(session, tenant, mover, ["ARRIVING"]);
    await stages.announceLeaving(from, tenant, mover);
    await stages.expectTenant(to, tenant, mover);
    await clearTenant(to, tenant, arriving);
    await clock.sleep(announceMs);
    const pausedAt = clock.mono();
    await stages.pauseTenant(from, tenant, mover, clock);
    const rows = await copyTenant(from, to, tenant, arriving);
    await compareTenant(from, to, tenant);
    await stages.raiseFeed(to, tenant, clock);
    await nameTarget(directory, tenant, mover);
    await stages.settleTenant(to, tenant, mover);
    return { rows, pausedMs: Math.round(clock.mono() - pausedAt) };
  }

  /** The directory names the new shard. */
  async finish(): Promise<void> {
    const { tenant, mover, directory, from, to } = this.#parts;
    await stages.settleTenant(to, tenant, mover);
    await stages.dismissTenant(from, tenant, mover);
    await clearTenant(from, tenant, (session) => stages.holdState(session, tenant, mover, ["GONE"]));
    await directory.rows("delete from tape.shard_moves where tenant = $1 and mover = $2", [tenant, mover]);
  }
}

/** The one step by which the tenant changes its shard. */
function nameTarget(directory: ShardSession, tenant: string, mover: string): Promise<void> {
  return directory.transaction(async () => {
    const [row] = await directory.rows<{ target: string }>(
      "update tape.shard_moves set phase = 'CLEARING' where tenant = $1 and mover = $2 and phase = 'COPYING' returning target",
      [tenant, mover],
    );
    if (row === undefined) throw new TapeError("TAPE_SHARD_REFUSED", "another process has taken this move over");
    await directory.rows(
      "update tape.shard_tenants set shard = $2, version = version + 1, at = tape.now_ms() where tenant = $1",
      [tenant, row.target],
    );
  });
}

/** In this order: once the row is gone, no process continues the move. */
async function rollBack({ tenant, mover, directory, from }: Omit<Parts, "to">): Promise<void> {
  const [row] = await directory.rows(
    "select 1 from tape.shard_moves where tenant = $1 and mover = $2 and phase = 'COPYING'",
    [tenant, mover],
  );
  if (row === undefined) return;
  await stages.keepTenant(from, tenant, mover);
  await directory.rows("delete from tape.shard_moves where tenant = $1 and mover = $2", [tenant, mover]);
}

/** Starts the move, or continues one that was interrupted. undefined: the tenant is there already. */
async function begin(directory: ShardSession, request: MoveRequest, mover: string): Promise<MoveRow | undefined> {
  const { tenant, target, audit, record } = request;
  const known = await rowOf(directory, tenant);
  if (known !== undefined && known.target !== target)
    throw new TapeError(
      "TAPE_SHARD_REFUSED",
      "the tenant is moving to another shard: complete or cancel that move first",
    );
  if (known !== undefined) {
    await directory.rows("update tape.shard_moves set mover = $2 where tenant = $1", [tenant, mover]);
    return known;
  }
  await record();
  const [place] = await directory.rows<{ shard: string }>("select shard from tape.shard_tenants where tenant = $1", [
    tenant,
  ]);
  const source = Number(place!.shard);
  if (source === target) return undefined;
  await directory.rows(
    `insert into tape.shard_moves(tenant, source, target, phase, mover, by, reason, at)
     values ($1, $2, $3, 'COPYING', $4, $5, $6, tape.now_ms())`,
    [tenant, source, target, mover, audit.by, audit.reason],
  );
  return { source, target, phase: "COPYING" };
}

async function rowOf(directory: ShardSession, tenant: string): Promise<MoveRow | undefined> {
  const [row] = await directory.rows<{ source: string; target: string; phase: MoveRow["phase"] }>(
    "select source, target, phase from tape.shard_moves where tenant = $1",
    [tenant],
  );
  return row && { source: Number(row.source), target: Number(row.target), phase: row.phase };
}

/** One process at a time moves a tenant. The lock ends with its connection, however the process ends. */
function underLock<T>(deps: MoveDeps, tenant: string, work: (directory: ShardSession) => Promise<T>): Promise<T> {
  return deps.access(0).session(async (directory) => {
    const { clock } = deps;
    for (const until = clock.mono() + lockMs; clock.mono() < until; await clock.sleep(lockPollMs)) {
      const [lock] = await directory.rows<{ got: boolean }>(
        "select pg_try_advisory_lock(hashtext('durable-tape shard move'), hashtext($1)) as got",
        [tenant],
      );
      if (lock!.got) return work(directory);
    }
    throw new TapeError("TAPE_SHARD_REFUSED", "another process is moving this tenant: wait for its end");
  });
}
