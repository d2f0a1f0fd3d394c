import type { SingletonBody } from "../src/host/singleton/term.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { TestProcess } from "../testkit/kit/process.ts";
import type { PlannedShards } from "./plan-shards.ts";

export const shardedName = "sharded";

/** One event of a shard's body, as an outside observer sees it. Wall times. */
export interface ShardEvent {
  readonly process: string;
  readonly shard: number;
  readonly token: bigint;
  readonly at: number;
  /** start, end: of a body; worked: it asserted its lease and wrote. */
  readonly what: "start" | "worked" | "end";
}

/** What the replicas that share the shards had at one moment, and since when nothing has disturbed them. */
export interface ShardCheck {
  readonly at: number;
  /** For each live replica, how many shards it works on. */
  readonly held: readonly { readonly process: string; readonly shards: number; readonly max: number | undefined }[];
  readonly unheld: readonly number[];
  /** How long ago the last fault or change was over. */
  readonly calmMs: number;
  /** The same, without the time in which a dead process may still count as live. */
  readonly knownMs: number;
}

export interface ShardEvidence {
  readonly plan: PlannedShards;
  readonly events: readonly ShardEvent[];
  readonly checks: readonly ShardCheck[];
  /** Shards that were shed, and those whose holder was paused at that moment. */
  readonly sheds: number;
  readonly shedInPause: readonly { readonly process: string; readonly shard: number }[];
}

/** The bodies of all shards in all processes. */
export class ShardWork {
  readonly events: ShardEvent[] = [];
  /** Bodies that run, by process. */
  readonly #running = new Map<string, Set<number>>();

  body(process: TestProcess, { everyMs }: PlannedShards): SingletonBody {
    const running = new Set<number>();
    this.#running.set(process.name, running);
    return async ({ token, shard, abortSignal, assert, sleep, saveCheckpoint, checkpoint }) => {
      const { index } = shard!;
      const note = (what: ShardEvent["what"]): void =>
        void this.events.push({ process: process.name, shard: index, token, at: process.at, what });
      note("start");
      running.add(index);
      try {
        for (let round = Number(checkpoint ?? 0); !abortSignal.aborted; await sleep(everyMs)) {
          assert();
          note("worked");
          // The store may be unreachable; the next round saves it again.
          if (++round % 4 === 0) await saveCheckpoint(String(round)).catch(() => {});
        }
      } catch (error) {
        if (!isTapeError(error, "TAPE_LEASE_LOST")) throw error;
      } finally {
        running.delete(index);
        note("end");
      }
    };
  }

  /** Shards whose bodies run in this process. */
  runningIn(process: string): ReadonlySet<number> {
    return this.#running.get(process) ?? new Set();
  }
}
