import type { Clock } from "../../base/clock.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { Store } from "../contract/store.ts";
import type { Directory } from "./directory.ts";
import type { Shard } from "./shard.ts";

export interface RouterOptions {
  readonly shards: readonly Shard[];
  readonly directory: Directory;
  readonly clock: Clock;
  /** How long a call waits for a tenant that is moving. */
  readonly waitMs: number;
}

type Work<T> = (store: Store) => Promise<T>;

/** What the shards that could be reached have returned, and the names of the others. */
export interface Answers<T> {
  readonly found: readonly { readonly shard: Shard; readonly value: T }[];
  readonly missing: readonly string[];
}

/** Sends each call to its tenant's shard, or to all of them. */
export class Router {
  readonly shards: readonly Shard[];
  readonly directory: Directory;
  readonly #options: RouterOptions;

  constructor(options: RouterOptions) {
    this.shards = options.shards;
    this.directory = options.directory;
    this.#options = options;
  }

  async shardOf(tenant: string): Promise<Shard> {
    const number = await this.directory.locate(tenant);
    const shard = this.shards.find((one) => one.number === number);
    if (shard !== undefined) return shard;
    const message = `shard ${number}, which has the tenant, is not in this process's list`;
    throw new TapeError("TAPE_SHARD_MISMATCH", message, { shard: number });
  }

  /** A write. A shard that the tenant has left refuses it, and it goes to the next one. */
  write<T>(tenant: string, work: Work<T>): Promise<T> {
    return this.#routed(tenant, async (shard) => ({ value: await shard.call(work) }));
  }

  /** A read. The shard cannot refuse it, so the directory confirms the place afterwards. */
  read<T>(tenant: string, work: Work<T>): Promise<T> {
    return this.#routed(tenant, async (shard) => {
      const value = await shard.call(work);
      return (await this.directory.confirm(tenant, shard.number)) ? { value } : undefined;
    });
  }

  /** A write under a fence. Where the tenant leaves, every term is over. */
  async fenced<T>(tenant: string, work: Work<T>): Promise<T> {
    const shard = await this.shardOf(tenant);
    try {
      return await shard.call(work);
    } catch (error) {
      if (isTapeError(error, "TAPE_TENANT_MOVING"))
        throw new TapeError("TAPE_FENCED", "the tenant moves to another shard: its terms are over", {}, error);
      throw error;
    }
  }

  /** All shards at once; those that are down are left out and named. */
  async all<T>(work: (store: Store, shard: Shard) => Promise<T>): Promise<Answers<T>> {
    const found: { shard: Shard; value: T }[] = [];
    const missing: string[] = [];
    const results = await Promise.all(
      this.shards.map(async (shard) => {
        if (!shard.isAwaited) return undefined;
        try {
          return { shard, value: await shard.call((store) => work(store, shard)) };
        } catch (error) {
          if (isTapeError(error, "TAPE_STORE_UNREACHABLE")) return undefined;
          throw error;
        }
      }),
    );
    for (const [k, result] of results.entries()) {
      if (result === undefined) missing.push(this.shards[k]!.name);
      else found.push(result);
    }
    if (found.length === 0) throw this.unreachable(missing);
    return { found, missing };
  }

  /** All shards at once; fails if one is down, because a part would be a wrong answer. */
  async every<T>(work: (store: Store, shard: Shard) => Promise<T>): Promise<readonly T[]> {
    return Promise.all(this.shards.map((shard) => shard.call((store) => work(store, shard))));
  }

  /** The first shard that can be reached. */
  async any<T>(work: Work<T>): Promise<T> {
    const up = this.shards.filter(({ down }) => down === undefined);
    for (const shard of up) {
      try {
        return await shard.call(work);
      } catch (error) {
        if (!isTapeError(error, "TAPE_STORE_UNREACHABLE")) throw error;
      }
    }
    const { found } = await this.all(work);
    return found[0]!.value;
  }

  unreachable(missing: readonly string[]): TapeError {
    const names = missing.join(", ");
    const message = `${missing.length === 1 ? "shard" : "shards"} ${names} cannot be reached`;
    return new TapeError("TAPE_STORE_UNREACHABLE", message, { shards: names });
  }

  async #routed<T>(tenant: string, work: (shard: Shard) => Promise<{ readonly value: T } | undefined>): Promise<T> {
    const { clock, waitMs } = this.#options;
    const until = clock.mono() + waitMs;
    for (;;) {
      const shard = await this.shardOf(tenant);
      try {
        const done = await work(shard);
        if (done !== undefined) return done.value;
      } catch (error) {
        if (!isTapeError(error, "TAPE_TENANT_MOVING") || clock.mono() >= until) throw error;
      }
      await this.directory.refused(tenant, shard.number);
    }
  }
}
