import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { errorFields } from "../../base/reason.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { Store } from "../contract/store.ts";
import type { WakeHub } from "../wake-hub.ts";

/** One shard of a set, and how to open its store. */
export interface ShardSource {
  readonly name: string;
  /** Its place in the set, from 0 on; 0 has the directory. */
  readonly number: number;
  open(): Promise<Store>;
}

export interface ShardOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly wakes: WakeHub;
}

/** A closed shard is opened again at most this often; a call in between fails at once. */
const reopenMs = 1_000;

/**
 * One shard as this process sees it.
 *
 *   closed ──open──▶ open ──a call finds it unreachable──▶ down ──a call succeeds──▶ open
 *
 * Calls of its tenants are always tried. Calls for all shards leave out one that is down, except for one try per second.
 */
export class Shard {
  readonly name: string;
  readonly number: number;
  readonly #source: ShardSource;
  readonly #options: ShardOptions;
  #store: Store | undefined;
  #opening: Promise<Store> | undefined;
  #down: { readonly error: TapeError; readonly since: number } | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;
  #openedAt = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(source: ShardSource, options: ShardOptions) {
    this.name = source.name;
    this.number = source.number;
    this.#source = source;
    this.#options = options;
  }

  /** Its open store; undefined: it could not be opened yet. */
  get store(): Store | undefined {
    return this.#store;
  }

  /** Why it cannot be reached, as far as calls have shown, and for how long. */
  get down(): { readonly error: TapeError; readonly forMs: number } | undefined {
    if (this.#down === undefined) return undefined;
    return { error: this.#down.error, forMs: this.#options.clock.mono() - this.#down.since };
  }

  /** Whether a call for all shards should wait for this one. */
  get isAwaited(): boolean {
    if (this.#down === undefined) return true;
    const now = this.#options.clock.mono();
    if (now - this.#triedAt < reopenMs) return false;
    this.#triedAt = now;
    return true;
  }

  /** A call on its store. Every result shows whether the shard can be reached. */
  async call<T>(work: (store: Store) => Promise<T>): Promise<T> {
    try {
      const value = await work(this.#store ?? (await this.#open()));
      this.#reached();
      return value;
    } catch (error) {
      if (isTapeError(error, "TAPE_STORE_UNREACHABLE")) throw this.#unreached(error);
      this.#reached();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#opening?.catch(() => {}); // its caller has the error
    await this.#store?.close();
  }

  #open(): Promise<Store> {
    if (this.#closed) return Promise.reject(new TapeError("TAPE_STORE_CLOSED", "this store handle is closed"));
    const { clock, wakes } = this.#options;
    const now = clock.mono();
    if (this.#opening === undefined && this.#down !== undefined && now - this.#openedAt < reopenMs)
      return Promise.reject(this.#down.error);
    if (this.#opening === undefined) this.#openedAt = now;
    this.#opening ??= this.#source
      .open()
      .then((store) => {
        this.#store = store;
        store.onWake((wake) => wakes.emit(wake));
        return store;
      })
      .finally(() => {
        this.#opening = undefined;
      });
    return this.#opening;
  }

  #reached(): void {
    if (this.#down === undefined) return;
    const { clock, log } = this.#options;
    log("info", "shard.reachable", { shard: this.name, downMs: Math.round(clock.mono() - this.#down.since) });
    this.#down = undefined;
  }

  #unreached(cause: TapeError): TapeError {
    if (cause.details.shard !== undefined) return cause;
    const message = `shard ${this.name}: ${cause.message.replace(/^TAPE_\w+: /, "")}`;
    const error = new TapeError("TAPE_STORE_UNREACHABLE", message, { ...cause.details, shard: this.name }, cause);
    if (this.#down === undefined) {
      const { clock, log } = this.#options;
      this.#down = { error, since: clock.mono() };
      this.#triedAt = clock.mono();
      log("warn", "shard.unreachable", { shard: this.name, ...errorFields(error) });
    }
    return error;
  }
}
