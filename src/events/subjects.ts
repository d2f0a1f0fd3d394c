import { fnv1a } from "../base/fnv1a.ts";
import type { ReadOps, Subject } from "../store/contract/store.ts";
import { traceOf } from "./event.ts";

/** What the records of a journal are about, and what derives from it. */
export interface KnownSubject {
  readonly subject: Subject | undefined;
  /** Of the run's id: all records of a run are in the same lane. */
  readonly hash: number;
  readonly trace: string | undefined;
}

const maxKnown = 10_000;

/** Subjects of journals: read in one statement for those of a page that are not known. They never change. */
export class SubjectCache {
  readonly #read: Pick<ReadOps, "subjects">;
  readonly #tenant: string;
  readonly #known = new Map<number, KnownSubject>();

  constructor(read: Pick<ReadOps, "subjects">, tenant: string) {
    this.#read = read;
    this.#tenant = tenant;
  }

  /** Reads the subjects of these journals; `of` then returns them. */
  async load(journals: Iterable<number>): Promise<void> {
    const missing = [...new Set(journals)].filter((journal) => !this.#known.has(journal));
    if (missing.length === 0) return;
    if (this.#known.size + missing.length > maxKnown) this.#known.clear();
    const found = await this.#read.subjects(this.#tenant, missing);
    const byJournal = new Map(found.map((subject) => [subject.journal, subject]));
    for (const journal of missing) this.#known.set(journal, this.#knownOf(journal, byJournal.get(journal)));
  }

  of(journal: number): KnownSubject {
    return this.#known.get(journal) ?? this.#knownOf(journal, undefined);
  }

  #knownOf(journal: number, subject: Subject | undefined): KnownSubject {
    const run = subject?.run?.id;
    return {
      subject,
      hash: fnv1a(run ?? subject?.name ?? `journal ${journal}`),
      trace: run === undefined ? undefined : traceOf(this.#tenant, run),
    };
  }
}
