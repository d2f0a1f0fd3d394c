import { TapeError } from "../../model/errors.ts";
import type { Query, QueryResult } from "../sql/plan.ts";
import { commitTimestamp, type SpannerTransaction } from "./client.ts";
import type { Connections } from "./connections.ts";
import { storedOf } from "./numbers.ts";

const one: QueryResult = { rows: [], count: 1 };

type Params = Query["params"];

/** The store's own journal. */
const storeJournal = 1;

/**
 * The statements of one plan. Records are not inserted by a statement: they are mutations, which the commit carries, so
 * that their timestamps are those of the commit, and they cost no round trip. A key that exists already fails the commit.
 */
export class PlanTransaction {
  readonly #connections: Connections;
  readonly #transaction: SpannerTransaction;
  /** The database's time, as the latest statement has returned it. */
  #now: number | undefined;
  /** The last records that the commit will insert, by journal: no statement sees them. */
  readonly #heads = new Map<number, number>();
  /** The labels of the runs that it has created. */
  readonly #labels = new Map<unknown, string>();

  constructor(connections: Connections, transaction: SpannerTransaction) {
    this.#connections = connections;
    this.#transaction = transaction;
  }

  readonly perform = (call: Query): Promise<QueryResult> => {
    const { sql, params } = call;
    switch (sql) {
      case "record.append":
      case "record.create":
        return this.#insert(Number(params.journal), Number(params.seq), params);
      case "note.create":
        return this.#insert(-Number(params.journal), Number(params.seq), params);
      case "store.record":
        return this.#insertStoreRecords(params, [String(params.body)]);
      case "store.records":
        return this.#insertStoreRecords(params, JSON.parse(String(params.bodies)) as string[]);
      case "journal.head":
        return this.#head(Number(params.journal));
      case "run.create":
      case "run.root":
        if (typeof params.labels === "string") this.#labels.set(params.journal, params.labels);
        return this.#run(call);
      case "labels.create":
        return this.#run({ sql, params: { ...params, pairs: pairsOf(this.#labels.get(params.journal)) } });
      case "labels.put":
        return this.#run({ sql, params: { ...params, pairs: pairsOf(params.labels) } });
      case "erase.labels":
        return this.#replaceLabels(call);
      default:
        return this.#run(call);
    }
  };

  /** The row by which a lost response is resolved. */
  witness(id: bigint): void {
    this.#transaction.insert("witness", [{ id: String(id), void: false, committed: commitTimestamp }]);
  }

  async #run(call: Query): Promise<QueryResult> {
    const result = await this.#connections.perform(this.#transaction, call);
    const now = result.rows[0]?.now;
    if (typeof now === "number") this.#now = now;
    return result;
  }

  async #replaceLabels(call: Query): Promise<QueryResult> {
    const result = await this.#run(call);
    await this.#connections.perform(this.#transaction, { sql: "erase.old_labels", params: call.params });
    return result;
  }

  async #time(): Promise<number> {
    if (this.#now === undefined) {
      const { rows } = await this.#connections.perform(this.#transaction, { sql: "time", params: {} });
      this.#now = Number(rows[0]?.now);
    }
    return this.#now;
  }

  async #insert(journal: number, seq: number, { token = 0n, kind, body }: Params): Promise<QueryResult> {
    const row = {
      journal: String(storedOf(journal)),
      seq: String(seq),
      token: String(token),
      kind,
      body: Buffer.from(String(body)),
    };
    this.#transaction.insert("records", [{ ...row, at: String(await this.#time()), committed: commitTimestamp }]);
    if (seq <= (this.#heads.get(journal) ?? 0))
      throw new TapeError("TAPE_INVARIANT", "a record twice", { journal, seq });
    this.#heads.set(journal, seq);
    return one;
  }

  async #insertStoreRecords({ kind }: Params, bodies: readonly string[]): Promise<QueryResult> {
    let seq = Number((await this.#head(storeJournal)).rows[0]?.head);
    for (const body of bodies) await this.#insert(storeJournal, ++seq, { kind, body });
    return { rows: [], count: bodies.length };
  }

  async #head(journal: number): Promise<QueryResult> {
    const { rows } = await this.#run({ sql: "journal.head", params: { journal } });
    return { rows: [{ head: Math.max(Number(rows[0]?.head), this.#heads.get(journal) ?? 0) }], count: 1 };
  }
}

/** An object as the text of a list of pairs. */
const pairsOf = (object: unknown): string =>
  JSON.stringify(Object.entries(JSON.parse(String(object ?? "{}")) as object));
