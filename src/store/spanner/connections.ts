import type { Clock } from "../../base/clock.ts";
import { TapeError } from "../../model/errors.ts";
import { cutPage, payloadsOf, sizeOfRow } from "../sql/paging.ts";
import type { Query, QueryResult, Row } from "../sql/plan.ts";
import { Slots } from "../statement-slots.ts";
import type { OpenClient, SpannerDatabase, SpannerTransaction } from "./client.ts";
import { rowOf, Statements } from "./statements.ts";

export interface ConnectionsOptions {
  readonly client: OpenClient;
  readonly clock: Clock;
  readonly sessions: number;
  /** How many calls may wait for a session, and for how long. */
  readonly waiting: number;
  readonly waitMs: number;
  /** A seam for tests: see Statements. */
  readonly time?: () => number;
}

/** Spanner aborts a transaction that has been idle for this long. */
export const boundMs = 10_000;

/** How many calls the client has sent to the server, for benchmarks. */
export interface RoundTrips {
  statements: number;
  commits: number;
}

/** Statements by name, in sessions that tenants share. */
export class Connections {
  readonly statements: Statements;
  readonly roundTrips: RoundTrips = { statements: 0, commits: 0 };
  readonly #client: OpenClient;
  readonly #slots: Slots;
  #closing: Promise<void> | undefined;

  constructor({ client, clock, sessions, waiting, waitMs, time }: ConnectionsOptions) {
    this.#client = client;
    this.statements = new Statements(time);
    this.#slots = new Slots({ clock, slots: sessions, waiting, waitMs });
  }

  get database(): SpannerDatabase {
    if (this.#closing !== undefined) throw new TapeError("TAPE_STORE_CLOSED", "this store handle is closed");
    return this.#client.database;
  }

  /** One strong read outside a transaction. A page ends with the row that fills it, and no more are read. */
  async read(call: Pick<Query, "params"> & { readonly sql: string }, tenant?: string): Promise<QueryResult> {
    return this.inSlot(tenant, async () => {
      this.roundTrips.statements++;
      const { pageBytes } = call.params;
      const query = this.statements.bind(call);
      if (typeof pageBytes !== "number") {
        const rows = (await this.database.run(query))[0].map(rowOf);
        return { rows, count: rows.length };
      }
      const columns = payloadsOf(call.sql) ?? [];
      const rows: Row[] = [];
      let bytes = 0;
      for await (const columnsOf of this.database.runStream(query)) {
        const row = rowOf(columnsOf);
        rows.push(row);
        bytes += sizeOfRow(row, columns);
        if (bytes >= pageBytes) return { rows, count: rows.length, more: true };
      }
      return { rows, count: rows.length };
    });
  }

  /** One statement of a transaction. */
  async perform(
    transaction: Pick<SpannerTransaction, "run">,
    call: Pick<Query, "params"> & { readonly sql: string },
  ): Promise<QueryResult> {
    this.roundTrips.statements++;
    const { returnsRows } = this.statements.get(call.sql);
    const [found, stats] = await transaction.run(this.statements.bind(call));
    if (!returnsRows) return { rows: [], count: Number(stats?.rowCountExact ?? 0) };
    const rows = found.map(rowOf);
    const { pageBytes } = call.params;
    if (typeof pageBytes === "number") return cutPage(rows, payloadsOf(call.sql) ?? [], pageBytes);
    return { rows, count: rows.length };
  }

  /** Tenants take turns: see Slots. */
  async inSlot<T>(tenant: string | undefined, work: () => Promise<T>): Promise<T> {
    await this.#slots.take(tenant);
    try {
      return await work();
    } finally {
      this.#slots.give(tenant);
    }
  }

  close(): Promise<void> {
    this.#slots.close();
    this.#closing ??= this.#client.close();
    return this.#closing;
  }
}
