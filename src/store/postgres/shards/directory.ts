import type { Clock } from "../../../base/clock.ts";
import type { Random } from "../../../base/random.ts";
import { isTapeError, TapeError } from "../../../model/errors.ts";
import { chosenShard, type Directory } from "../../sharded/directory.ts";
import type { Shard } from "../../sharded/shard.ts";
import type { ShardAccess } from "./access.ts";

/**
 * How long a process trusts what it knows about a shard's tenants, counted from the moment it asked. A mover announces a
 * move and waits longer than this before the tenant leaves: a read that was answered in time was answered by the right
 * shard. Writes need no clock: the shard refuses them.
 */
export const trustMs = 2_000;
/** Between two tries of a call to a tenant that is moving. */
const retryMs = { min: 20, max: 100 };
/** Places of more tenants than this are forgotten together, and read again. */
const maxTenants = 100_000;

export interface DirectoryOptions {
  readonly shards: readonly Shard[];
  /** The tables of a shard; undefined while it cannot be reached. */
  readonly access: (shard: number) => ShardAccess | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

interface Watch {
  moves: number;
  trustedUntil: number;
  leaving: ReadonlySet<string>;
  asking: Promise<void> | undefined;
}

/** The directory of the first shard, as one process sees it. Every shard also has a list of its own tenants. */
export class PostgresDirectory implements Directory {
  readonly #options: DirectoryOptions;
  readonly #places = new Map<string, number>();
  readonly #asking = new Map<string, Promise<number>>();
  readonly #watches = new Map<number, Watch>();

  constructor(options: DirectoryOptions) {
    this.#options = options;
  }

  async locate(tenant: string): Promise<number> {
    const known = this.#places.get(tenant);
    if (known !== undefined) return known;
    const asking = this.#asking.get(tenant) ?? this.#locate(tenant).finally(() => this.#asking.delete(tenant));
    this.#asking.set(tenant, asking);
    return asking;
  }

  async confirm(tenant: string, shard: number): Promise<boolean> {
    const watch = this.#watchOf(shard);
    if (watch.trustedUntil <= this.#options.clock.mono()) await this.#refresh(shard, watch);
    if (!watch.leaving.has(tenant)) return (await this.locate(tenant)) === shard;
    this.#places.delete(tenant);
    return (await this.#locate(tenant)) === shard;
  }

  async refused(tenant: string): Promise<void> {
    const { clock, random } = this.#options;
    this.#places.delete(tenant);
    await clock.sleep(retryMs.min + random.float() * (retryMs.max - retryMs.min));
  }

  async moves(): Promise<number> {
    const { shards } = this.#options;
    const reachable = shards.filter(({ number }) => this.#options.access(number) !== undefined);
    await Promise.all(
      reachable.map(({ number }) =>
        this.#refresh(number, this.#watchOf(number)).catch((error: unknown) => {
          if (!isTapeError(error, "TAPE_STORE_UNREACHABLE")) throw error; // its last known number counts
        }),
      ),
    );
    return shards.reduce((sum, { number }) => sum + this.#watchOf(number).moves, 0);
  }

  close(): void {
    this.#places.clear();
  }

  #watchOf(shard: number): Watch {
    let watch = this.#watches.get(shard);
    if (watch === undefined) {
      watch = { moves: 0, trustedUntil: Number.NEGATIVE_INFINITY, leaving: new Set(), asking: undefined };
      this.#watches.set(shard, watch);
    }
    return watch;
  }

  #refresh(shard: number, watch: Watch): Promise<void> {
    watch.asking ??= this.#ask(shard, watch).finally(() => {
      watch.asking = undefined;
    });
    return watch.asking;
  }

  async #ask(shard: number, watch: Watch): Promise<void> {
    const sentAt = this.#options.clock.mono();
    const { rows } = await this.#accessOf(shard).ask("shard.moving", {});
    const moves = Number(rows[0]?.moves ?? 0);
    if (moves !== watch.moves) {
      for (const [tenant, place] of this.#places) if (place === shard) this.#places.delete(tenant);
    }
    watch.moves = moves;
    watch.leaving = new Set(rows.flatMap(({ tenant }) => tenant ?? []));
    watch.trustedUntil = sentAt + trustMs;
  }

  async #locate(tenant: string): Promise<number> {
    const shard = await this.#read(tenant);
    if (this.#places.size >= maxTenants) this.#places.clear();
    this.#places.set(tenant, shard);
    return shard;
  }

  async #read(tenant: string): Promise<number> {
    // While the directory is known to be down, nothing waits for it.
    const { down } = this.#options.shards.find(({ number }) => number === 0) ?? {};
    const resident = down === undefined ? undefined : await this.#resident(tenant);
    if (resident !== undefined) return resident;
    try {
      return await this.#assigned(tenant);
    } catch (error) {
      const place = isTapeError(error, "TAPE_STORE_UNREACHABLE") ? await this.#resident(tenant) : undefined;
      if (place === undefined) throw error;
      return place;
    }
  }

  async #assigned(tenant: string): Promise<number> {
    const directory = this.#accessOf(0);
    let [found] = (await directory.ask("shard.locate", { tenant })).rows;
    if (found === undefined) {
      const { rows } = await directory.ask("shard.roster", {});
      const open = rows.filter(({ state }) => state === "OPEN").map(({ number }) => Number(number));
      if (open.length === 0) throw new TapeError("TAPE_SHARD_REFUSED", "no shard accepts new tenants");
      await directory.ask("shard.assign", { tenant, shard: chosenShard(tenant, open) });
      [found] = (await directory.ask("shard.locate", { tenant })).rows;
    }
    const shard = Number(found!.shard);
    await this.#accessOf(shard).ask("shard.settle", { tenant });
    return shard;
  }

  /** The shard that has the tenant by its own list; undefined: none that can be reached. */
  async #resident(tenant: string): Promise<number | undefined> {
    for (const { number } of this.#options.shards) {
      const access = this.#options.access(number);
      if (access === undefined || number === 0) continue;
      const row = await access.ask("shard.residence", { tenant }).catch(() => undefined); // it is down, too
      const state = row?.rows[0]?.state;
      if (state === "HERE" || state === "LEAVING") return number;
    }
    return undefined;
  }

  #accessOf(shard: number): ShardAccess {
    const access = this.#options.access(shard);
    if (access !== undefined) return access;
    const name = this.#options.shards.find(({ number }) => number === shard)?.name ?? shard;
    throw new TapeError("TAPE_STORE_UNREACHABLE", `shard ${name} cannot be reached`, { shard: name });
  }
}
