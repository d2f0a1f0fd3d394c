import type { Fence } from "../src/model/fence.ts";
import type { Term } from "../src/model/lease.ts";
import type { NewRecord } from "../src/model/records.ts";

/** One drive of one generation, and how much of the journal its process has read for it. */
export interface Wake {
  readonly process: string;
  readonly journal: number;
  readonly token: bigint;
  /** The first record of the generation. */
  readonly begins: number;
  records: number;
}

/** Counts what one process reads of the journals of the runs that it drives. */
export class WakeWatch {
  readonly #process: string;
  readonly #wakes: Wake[];
  readonly #current = new Map<number, Wake>();

  constructor(process: string, wakes: Wake[]) {
    this.#process = process;
    this.#wakes = wakes;
  }

  noteTerms(terms: readonly Term[]): void {
    for (const { fence, kind, journal, begins = 1 } of terms) if (kind === "run") this.#start(fence, journal, begins);
  }

  noteAppend(
    fence: Fence,
    { after, records }: { readonly after: number; readonly records: readonly NewRecord[] },
  ): void {
    if (records.at(-1)?.kind === "run.continued") this.#start(fence, fence.journal, after + records.length);
  }

  noteRead(journal: number, records: number): void {
    const wake = this.#current.get(journal);
    if (wake !== undefined) wake.records += records;
  }

  #start({ token }: Fence, journal: number, begins: number): void {
    const wake = { process: this.#process, journal, token, begins, records: 0 };
    this.#current.set(journal, wake);
    this.#wakes.push(wake);
  }
}
