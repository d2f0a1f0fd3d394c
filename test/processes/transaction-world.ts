import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { gate } from "../../src/sdk/gate.ts";
import type { OwnTransaction } from "../../src/sdk/transaction.ts";
import { createRunner, type Runner, workflow } from "../../src/sdk/workflow.ts";

/** Options of the process that dies. */
export interface DyingOptions {
  readonly url: string;
  readonly ttlMs: number;
  /** start: after the commit of one transaction and inside the next. inside, after: around the commit of a step. */
  readonly dies: "start" | "inside" | "after";
}

/** A caller with a table `orders` in the store's database. */
export interface Shop {
  /** The source of transactional steps. */
  readonly source: unknown;
  /** Its own connection, for transactions of its own. */
  readonly connection: OwnTransaction;
  run(sql: string): Promise<void>;
  /** Inserts by what the body of a step gets; a promise where the driver is asynchronous. */
  insert(client: unknown, order: string): unknown;
  orders(): Promise<string[]>;
  close(): Promise<void>;
}

/** `committed` is called in the moment in which a step has committed, before anything else can happen. */
export async function openShop(url: string, committed = (): void => {}): Promise<Shop> {
  return url.startsWith("sqlite:") ? sqliteShop(url.slice("sqlite:".length), committed) : postgresShop(url, committed);
}

function sqliteShop(file: string, committed: () => void): Shop {
  const [db, source] = [new DatabaseSync(file, { timeout: 5_000 }), new DatabaseSync(file, { timeout: 5_000 })];
  const prepare = source.prepare.bind(source);
  source.prepare = (sql) => {
    const statement = prepare(sql);
    if (sql !== "commit") return statement;
    const run = statement.run.bind(statement);
    statement.run = (...values: never[]) => {
      const done = run(...values);
      committed();
      return done;
    };
    return statement;
  };
  return {
    source,
    connection: db,
    run: async (sql) => db.exec(sql),
    insert: (client, order) => void (client as DatabaseSync).prepare("insert into orders values (?)").run(order),
    orders: async () =>
      db
        .prepare("select id from orders order by id")
        .all()
        .map(({ id }) => String(id)),
    close: async () => {
      db.close();
      source.close();
    },
  };
}

async function postgresShop(url: string, committed: () => void): Promise<Shop> {
  const connectionString = url.split("?")[0]!;
  const pool = new pg.Pool({ connectionString, max: 2 });
  const own = new pg.Client({ connectionString });
  await own.connect();
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...all: unknown[]) => unknown;
    client.query = (async (...args: unknown[]) => {
      const result = await query(...args);
      if (args[0] === "commit") committed();
      return result;
    }) as unknown as typeof client.query;
  });
  return {
    source: pool,
    connection: own,
    run: async (sql) => void (await own.query(sql)),
    insert: async (client, order) =>
      void (await (client as pg.Client).query("insert into orders values ($1)", [order])),
    orders: async () => (await own.query("select id from orders order by id")).rows.map(({ id }) => String(id)),
    close: async () => {
      await own.end();
      await pool.end();
    },
  };
}

export const approval = gate<string>("approval");

/** `inside` is called inside the transaction of a step, after its row was written. */
export function shopRunner(shop: Shop, inside = (): void => {}): Runner {
  const order = workflow("order", async (tape, input: string) =>
    tape.transaction("book", shop.source as DatabaseSync, (client) => {
      const inserted = shop.insert(client, input);
      if (!(inserted instanceof Promise)) inside();
      return inserted instanceof Promise ? inserted.then(inside).then(() => "booked") : "booked";
    }),
  );
  const approved = workflow("approved", async (tape) => (await tape.gate(approval)).status);
  return createRunner({ workflows: [order, approved] });
}
