import type { Connections } from "./connections.ts";

/** Journal numbers are taken from the store in blocks; an unused rest is lost, which harms nobody. */
const blockSize = 1_000;
/** A single transaction opens at most so many journals (one for each record it appends). */
const reserve = 1_001;

export class Journals {
  readonly #connections: Connections;
  #free: { next: number; left: number }[] = [];
  #filling: Promise<void> | undefined;

  constructor(connections: Connections) {
    this.#connections = connections;
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
    const { rows } = await this.#connections.query(this.#connections.pool, "journals.block", { size });
    this.#free.push({ next: Number(rows[0]?.first), left: size });
  }
}
