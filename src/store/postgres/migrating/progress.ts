import { defined } from "../../../base/defined.ts";
import { sqlFiles } from "../../sql/files.ts";
import type { Migration } from "../../sql/migrations.ts";
import type { Row } from "../../sql/plan.ts";
import { loadStatements } from "../../sql/statements.ts";
import type { SessionOptions } from "./session.ts";

/**
 * A migration may take this long without a log line. Then it logs each time twice as much time has passed, up to ten
 * seconds.
 */
const quietMs = 2_000;
const maxQuietMs = 10_000;

const text = loadStatements(sqlFiles(new URL("sql/", import.meta.url)), (position) => `$${position}`).get(
  "progress",
)!.text;

/** Logs the progress of a migration, ours or another process's, for as long as it takes. */
export class Progress {
  readonly #options: SessionOptions;
  #migration = "";
  #batch: { readonly table: string; readonly rows: number } | undefined;
  #loggedAt: number;
  #quietMs = quietMs;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#loggedAt = options.clock.mono();
  }

  begin(migration: Migration): void {
    this.#migration = migration.name;
    this.#batch = undefined;
  }

  changed(table: string, rows: number): void {
    this.#batch = { table, rows };
  }

  /** Logs progress until the work ends. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const stop = new AbortController();
    const logging = this.#loop(stop.signal);
    try {
      return await work();
    } finally {
      stop.abort();
      await logging;
    }
  }

  async #loop(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    for (;;) {
      await clock.sleep(quietMs, signal);
      if (signal.aborted) return;
      await this.report(this.#migration);
    }
  }

  /** Logs progress if it is time to. */
  async report(about: string): Promise<void> {
    const { clock, connections, log } = this.#options;
    if (clock.mono() - this.#loggedAt < this.#quietMs) return;
    this.#loggedAt = clock.mono();
    this.#quietMs = Math.min(maxQuietMs, this.#quietMs * 2);
    const row = await connections.askText(text).then(
      ({ rows }) => rows.find((found: Row) => found.phase !== null) ?? rows[0],
      () => undefined, // the work itself reports the error
    );
    log("warn", "store.migration_progress", {
      migration: about,
      ...this.#batch,
      ...(row === undefined ? {} : progressFields(row)),
    });
  }
}

function progressFields(row: Row): Record<string, unknown> {
  const percentOf = (done: unknown, total: unknown): number | undefined =>
    Number(total) > 0 ? Math.floor((100 * Number(done)) / Number(total)) : undefined;
  const percent = percentOf(row.tuples_done, row.tuples_total) ?? percentOf(row.blocks_done, row.blocks_total);
  const behind = row.locker ?? (row.blockers === "" ? null : row.blockers);
  return {
    ...(row.index === null ? {} : { index: row.index }),
    ...(row.phase === null ? {} : { phase: row.phase }),
    ...defined({ percent }),
    ...(behind === null ? {} : { behind: `process ${behind}` }),
  };
}
