import pg from "pg";

/** What this process sends to PostgreSQL, counted at the driver, below all code of Tape. */
export interface StatementCount {
  readonly total: number;
  /** How often each statement was sent, by its name or first words. */
  readonly byName: Readonly<Record<string, number>>;
}

/** Counts from now on. The returned function ends it. `except`: a connection of the benchmark itself. */
export function countStatements(except?: pg.Client): () => StatementCount {
  const byName: Record<string, number> = {};
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function counted(this: pg.Client, ...args: unknown[]): never {
    if (this !== except) {
      const [first] = args as [string | { readonly name?: string; readonly text?: string }];
      const text = typeof first === "string" ? first : (first.name ?? first.text ?? "?");
      const short = text.replace(/\s+/g, " ").slice(0, 60);
      byName[short] = (byName[short] ?? 0) + 1;
    }
    return query.apply(this, args as never) as never;
  } as typeof query;
  return () => {
    pg.Client.prototype.query = query;
    return { total: Object.values(byName).reduce((sum, count) => sum + count, 0), byName };
  };
}
