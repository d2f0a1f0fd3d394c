import type { Connections } from "./connections.ts";
import { readFault } from "./faults.ts";
import type { Patience } from "./patience.ts";

/** Journal numbers are taken from the store in blocks; an unused rest is lost, which harms nobody. */
const blockSize = 1_000;
/** A single transaction opens at most so many journals (one for each record it appends). */
const reserve = 1_001;

export class Journals {
  readonly #connections: Connections;
  readonly #patience: Patience;
  readonly #moved: () => Promise<void>;
  #free: { next: number; left: number }[] = [];
  #filling: Promise<void> | undefined;

  /** `moved` is called when the store hands out no numbers because its server is another one than before. */
  constructor(connections: Connections, patience: Patience, moved: () => Promise<void>) {
    this.#connections = connections;
    this.#patience = patience;
    this.#moved = moved;
  }

  /** Resolves once a transaction can take as many numbers as it may need, without asking in the middle. */
  async ready(): Promise<void> {
    while (this.#left() < reserve) {
      this.#filling ??= this.#fill().finally(() => {
        this.#filling = undefined;
      });
      await this.#filling;
    }
  }

  next(): number {
    const block = this.#free[0];
    if (block === undefined) throw new Error("journal numbers were taken without ready()");
    const number = block.next++;
    if (--block.left === 0) this.#free.shift();
    return number;
  }

  #left(): number {
    return this.#free.reduce((sum, block) => sum + block.left, 0);
  }

  async #fill(): Promise<void> {
    const size = blockSize * 2;
    let first: unknown;
    while (first === undefined) {
      first = await this.#take(size);
      if (first === undefined) await this.#moved();
    }
    this.#free.push({ next: Number(first), left: size });
  }

  /** Asked again after a lost answer: a block that nobody got is lost like an unused rest. */
  async #take(size: number): Promise<unknown> {
    const connections = this.#connections;
    try {
      const ask = () => connections.ask("journals.block", { size });
      return (await this.#patience.insist(ask)).rows[0]?.first;
    } catch (error) {
      throw readFault(error);
    }
  }
}
