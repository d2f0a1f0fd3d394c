/** The part of a `pg` client that Tape uses inside your transaction. It is one connection, not a pool. */
export interface PostgresConnection {
  /** Executes one statement on this connection. */
  query(query: {
    readonly text: string;
    readonly values?: unknown[];
  }): Promise<{ readonly rows: readonly unknown[]; readonly rowCount: number | null }>;
}

/** The part of a `node:sqlite` database that Tape uses inside your transaction. */
export interface SqliteConnection {
  /** Whether a transaction is open. */
  readonly isTransaction: boolean;
  /** Prepares a statement. */
  prepare(sql: string): unknown;
  /** Executes statements without results. */
  exec(sql: string): void;
}

/** A connection to the store's database on which you have started a transaction. */
export type OwnTransaction = PostgresConnection | SqliteConnection;

/** A pool of `pg` that leads to the store's database. */
export interface PostgresPool {
  /** Hands out a connection; its `release` returns it. */
  connect(): Promise<PostgresConnection>;
}

/** The client that a pool hands out. The pool of `pg` has a second form of `connect`, with a callback. */
export type ClientOf<P> = P extends { connect: { (): Promise<infer C>; (callback: never): unknown } }
  ? unknown extends C
    ? P extends { connect(): Promise<infer D> }
      ? D
      : never
    : C
  : never;
