import { createHash } from "node:crypto";
import { type Random, seededRandom } from "../src/base/random.ts";
import type { Archive } from "../src/retention/archive.ts";
import type { TestProcess } from "../testkit/kit/process.ts";
import type { VirtualTime } from "../testkit/kit/virtual-time.ts";
import { chance } from "./draw.ts";
import type { PlannedRetention } from "./plan-retention.ts";

/** What an archive did, in order. */
export type ArchiveEvent = "stored" | "refused" | "lost" | "response lost" | "denied" | "removed";

/**
 * An archive in memory. It is slow, refuses files, loses or cuts them off without an error, loses responses, and denies
 * files that it has. It never confirms what it does not have: that is all that an archive promises.
 */
export class WorldArchive {
  readonly files = new Map<string, Uint8Array>();
  readonly events: ArchiveEvent[] = [];
  readonly #plan: PlannedRetention;
  readonly #time: VirtualTime;
  readonly #random: Random;

  constructor(plan: PlannedRetention, time: VirtualTime, seed: number | string) {
    this.#plan = plan;
    this.#time = time;
    this.#random = seededRandom(`archive ${seed}`);
  }

  /** The archive of one process: what it has sent arrives, whatever becomes of it. */
  on(process: TestProcess): Archive {
    return {
      put: async (name, body) => {
        const blocks: Uint8Array[] = [];
        for await (const block of body) blocks.push(block);
        return process.callUpstream("archive", () => this.#put(name, Buffer.concat(blocks)));
      },
      has: (name, sha256) => process.callUpstream("archive", () => this.#has(name, sha256)),
      get: async () => undefined,
      remove: (name) => process.callUpstream("archive", () => this.#remove(name)),
    };
  }

  async #put(name: string, bytes: Uint8Array): Promise<void> {
    const { failShare, lossShare } = this.#plan;
    await this.#travel();
    if (chance(this.#random, failShare)) throw this.#refuse();
    if (chance(this.#random, lossShare)) {
      this.events.push("lost");
      if (chance(this.#random, 0.5)) this.files.set(name, bytes.subarray(0, bytes.length / 2));
      return;
    }
    this.files.set(name, bytes);
    const isAnswered = !chance(this.#random, failShare);
    this.events.push(isAnswered ? "stored" : "response lost");
    await this.#travel();
    if (!isAnswered) throw new Error("the archive's response was lost");
  }

  async #has(name: string, sha256: string): Promise<boolean> {
    await this.#travel();
    const found = this.files.get(name);
    if (found === undefined || createHash("sha256").update(found).digest("hex") !== sha256) return false;
    if (!chance(this.#random, this.#plan.lossShare)) return true;
    this.events.push("denied");
    return false;
  }

  async #remove(name: string): Promise<void> {
    await this.#travel();
    if (this.files.delete(name)) this.events.push("removed");
  }

  #refuse(): Error {
    this.events.push("refused");
    return new Error("the archive is full");
  }

  #travel(): Promise<void> {
    return this.#time.sleep(this.#random.int(this.#plan.slowMs));
  }
}
