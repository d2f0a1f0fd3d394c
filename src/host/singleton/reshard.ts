import { TapeError } from "../../model/errors.ts";
import type { LeaseView } from "../../model/lease.ts";
import { assertName, numberOf } from "../../sdk/validate.ts";
import type { LeaseFilter } from "../../store/contract/list.ts";
import type { OperatorReason } from "../../store/contract/store.ts";
import { shardsIn } from "./distribution.ts";
import { maxShards, shardPrefix } from "./shard-of.ts";

/** The new number of shards, who changes it and why. */
export interface ReshardRequest extends OperatorReason {
  /** The new number of shards. */
  readonly to: number;
}

/** The leases that a reshard fenced and paused, and those that it let processes hold again. */
export interface Reshard {
  /** Leases of the old number, which no process may hold now. */
  readonly paused: readonly string[];
  /** Leases of the new number, which processes may hold now. */
  readonly resumed: readonly string[];
}

interface NamedLeases {
  list(filter: LeaseFilter): Promise<LeaseView[]>;
  pause(name: string, action: OperatorReason): Promise<void>;
  resume(name: string, action: OperatorReason): Promise<void>;
}

/** Rows of one page; a singleton has at most 1,024 shards, and few numbers of them in its life. */
const pageRows = 1_000;

/**
 * Changes the number of shards: fences and pauses every shard of another number, so that its processes cannot take it
 * again, and resumes those of the new number. Their checkpoints stay. Repeating it is harmless.
 */
export async function reshard(leases: NamedLeases, name: string, request: ReshardRequest): Promise<Reshard> {
  assertName("reshard", name);
  const { to, ...action } = request;
  numberOf(`reshard of ${name}`, "to", to, 1, { min: 1, max: maxShards });
  const shards = shardsIn(name, await allOf(leases, shardPrefix(name)));
  if (shards.length === 0) throw new TapeError("TAPE_BAD_INPUT", `singleton ${name} has no shards`, { name });
  const old = shards.filter(({ of, lease }) => of !== to && !lease.paused).map(({ lease }) => lease.name!);
  const fresh = shards.filter(({ of, lease }) => of === to && lease.paused).map(({ lease }) => lease.name!);
  for (const lease of old) await leases.pause(lease, action);
  for (const lease of fresh) await leases.resume(lease, action);
  return { paused: old, resumed: fresh };
}

async function allOf(leases: NamedLeases, prefix: string): Promise<LeaseView[]> {
  const all: LeaseView[] = [];
  for (let above: string | undefined; ; ) {
    const page = await leases.list({
      ...{ kind: "name", prefix, limit: pageRows },
      ...(above !== undefined && { above }),
    });
    all.push(...page);
    const last = page.at(-1)?.name;
    if (page.length < pageRows || last === null || last === undefined) return all;
    above = last;
  }
}
