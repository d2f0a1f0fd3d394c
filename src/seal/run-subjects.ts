import { isTapeError } from "../model/errors.ts";
import type { Store } from "../store/contract/store.ts";

/** What a codec may choose the key by. */
export interface RunSubject {
  readonly id: string;
  readonly workflow: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Enough for all runs that a process drives at once; what is dropped is read again. */
const maxKept = 10_000;
/** The store takes as many journals in one call. */
const maxAtOnce = 100;

/** The runs that own journals, for calls that name a journal by its number. None of it ever changes. */
export class RunSubjects {
  readonly #read: Pick<Store["read"], "subjects" | "run">;
  readonly #kept = new Map<string, RunSubject | undefined>();

  constructor(read: Pick<Store["read"], "subjects" | "run">) {
    this.#read = read;
  }

  add(tenant: string, journal: number, subject: RunSubject): void {
    this.#keep(`${journal} ${tenant}`, subject);
  }

  /** The run with this id, for calls that name it so; undefined: there is none, or this caller may not read it. */
  async byId(tenant: string, id: string): Promise<RunSubject | undefined> {
    const key = `run ${JSON.stringify([tenant, id])}`;
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    try {
      const run = await this.#read.run(tenant, id);
      if (run === undefined) return undefined;
      const subject = { id, workflow: run.workflow, labels: run.labels };
      this.#keep(key, subject);
      return subject;
    } catch (error) {
      if (isTapeError(error, "TAPE_FORBIDDEN") || isTapeError(error, "TAPE_BAD_INPUT")) return undefined;
      throw error;
    }
  }

  /** undefined: the journal belongs to no run. */
  async of(tenant: string, journal: number): Promise<RunSubject | undefined> {
    const key = `${journal} ${tenant}`;
    if (!this.#kept.has(key)) await this.load(tenant, [journal]);
    return this.#kept.get(key);
  }

  async load(tenant: string, journals: readonly number[]): Promise<void> {
    const missing = [...new Set(journals)].filter((journal) => !this.#kept.has(`${journal} ${tenant}`));
    for (let k = 0; k < missing.length; k += maxAtOnce) {
      const some = missing.slice(k, k + maxAtOnce);
      const found = await this.#read.subjects(tenant, some);
      for (const { journal, run } of found) {
        if (run === undefined) this.#keep(`${journal} ${tenant}`, undefined);
        else this.#keep(`${journal} ${tenant}`, { id: run.id, workflow: run.workflow, labels: run.labels });
      }
    }
  }

  #keep(key: string, subject: RunSubject | undefined): void {
    if (this.#kept.size >= maxKept) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.set(key, subject);
  }
}
