import { systemClock } from "../../src/base/clock.ts";
import { Child } from "./child.ts";
import type { ShardMessage } from "./shards-replica.ts";

/** A body of a shard, from its first line to its last one or the death of its process. */
interface Body {
  readonly replica: number;
  readonly token: bigint;
  readonly from: number;
  to: number;
}

/** Replicas of a sharded singleton in processes of their own, and the judge of what their bodies report. */
export class ShardWorld {
  readonly #url: string;
  readonly #shards: number;
  readonly #ttlMs: number;
  readonly #replicas = new Map<number, Child<ShardMessage>>();
  readonly #bodies: Body[][];
  #started = 0;
  #changed = (): void => {};

  constructor(url: string, shards: number, ttlMs: number) {
    this.#url = url;
    this.#shards = shards;
    this.#ttlMs = ttlMs;
    this.#bodies = Array.from({ length: shards }, () => []);
  }

  get replicas(): readonly Child<ShardMessage>[] {
    return [...this.#replicas.values()];
  }

  /** Starts a replica. Returns when it began to take shards. */
  async join(): Promise<number> {
    const nr = ++this.#started;
    const child = new Child<ShardMessage>(
      "shards-replica.ts",
      [this.#url, `${this.#shards}`, `${this.#ttlMs}`],
      (message) => this.#note(nr, message),
    );
    this.#replicas.set(nr, child);
    await child.receive("ready");
    return systemClock.mono();
  }

  /** kill -9 of the replica with this place in the list. Returns when. */
  async kill(place: number): Promise<number> {
    const [nr, child] = [...this.#replicas][place]!;
    const at = systemClock.mono();
    await child.kill();
    this.#replicas.delete(nr);
    for (const bodies of this.#bodies) {
      for (const body of bodies) if (body.replica === nr) body.to = Math.min(body.to, at);
    }
    return at;
  }

  /** When every shard had a body in a living process. */
  async held(): Promise<number> {
    await this.#until(() => this.#held().every((body) => body !== undefined));
    return Math.max(...this.#held().map((body) => body!.from));
  }

  /** When no replica had two shards more than another, and all shards were held. */
  async even(): Promise<number> {
    await this.#until(() => {
      const held = this.#held();
      if (held.some((body) => body === undefined)) return false;
      const counts = [...this.#replicas.keys()].map((nr) => this.#countOf(nr));
      return Math.max(...counts) - Math.min(...counts) <= 1;
    });
    return systemClock.mono();
  }

  /** Bodies that began while another body of their shard ran, and tokens that did not rise. */
  get doubles(): number {
    return this.#bodies.reduce((sum, bodies) => {
      const sorted = bodies.toSorted((a, b) => a.from - b.from);
      const bad = sorted.filter(
        (body, k) => k > 0 && (sorted[k - 1]!.to > body.from || sorted[k - 1]!.token >= body.token),
      );
      return sum + bad.length;
    }, 0);
  }

  get bodies(): number {
    return this.#bodies.reduce((sum, bodies) => sum + bodies.length, 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.replicas.map((child) => child.kill()));
  }

  /** The body that runs now, by shard. */
  #held(): (Body | undefined)[] {
    return this.#bodies.map((bodies) => bodies.find(({ to }) => to === Number.POSITIVE_INFINITY));
  }

  #countOf(nr: number): number {
    return this.#held().filter((body) => body?.replica === nr).length;
  }

  #note(replica: number, message: ShardMessage): boolean {
    if (message.say !== "begins" && message.say !== "ends") return false;
    const bodies = this.#bodies[message.shard]!;
    const token = BigInt(message.token);
    if (message.say === "begins") {
      bodies.push({ replica, token, from: message.at, to: Number.POSITIVE_INFINITY });
    } else {
      const body = bodies.find((one) => one.replica === replica && one.token === token);
      if (body !== undefined) body.to = Math.min(body.to, message.at);
    }
    this.#changed();
    return true;
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      const late = AbortSignal.timeout(patienceMs);
      await new Promise<void>((resolve, reject) => {
        this.#changed = resolve;
        const state = (): string => JSON.stringify([...this.#replicas.keys()].map((nr) => [nr, this.#countOf(nr)]));
        late.addEventListener("abort", () => reject(new Error(`nothing has changed for ${patienceMs} ms: ${state()}`)));
      });
    }
  }
}

const patienceMs = 60_000;
