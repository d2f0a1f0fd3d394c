import { strict as assert } from "node:assert";
import pg from "pg";
import type { Log } from "../../../src/base/log.ts";
import { TapeError } from "../../../src/model/errors.ts";
import type { Fence } from "../../../src/model/fence.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import { Connections, type PostgresName } from "../../../src/store/postgres/connections.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { parsePostgresUrl } from "../../../src/store/postgres/url.ts";
import { sqlFiles } from "../../../src/store/sql/files.ts";
import type { Query, QueryResult } from "../../../src/store/sql/plan.ts";
import type { ParamsOf, RowOf } from "../../../src/store/sql/statements.gen.ts";
import { partsOf, type Statement } from "../../../src/store/sql/statements.ts";
import { dropDatabase, freshDatabase } from "../../postgres/database.ts";

const files = sqlFiles(new URL("../../../src/store/postgres/sql/", import.meta.url));
export const statementNames = [...files].flatMap(([file, text]) =>
  partsOf(file, text).flatMap(({ macro, name }) => (macro ? [] : [name])),
);

/** A database with a store in it, and the means to hold its own statements open in the middle of a transaction. */
export interface Scene {
  readonly url: string;
  readonly store: Store;
  readonly admin: pg.Client;
  /** Another handle, closed with the scene. */
  open(params?: string, log?: Log): Promise<Store>;
  /** A connection with the store's own settings and statements. */
  hand(params?: string): Promise<Hand>;
  /** Processes of this database that wait for a lock. */
  waiting(): Promise<number[]>;
  /** Resolves once a process (or this one) waits for a lock. */
  untilBlocked(pid?: number): Promise<void>;
  close(): Promise<void>;
}

/** One connection and the named statements of the store. */
export interface Hand {
  readonly client: pg.PoolClient;
  readonly pid: number;
  statement(name: string): Statement;
  run<N extends PostgresName>(name: N, params: ParamsOf<N>): Promise<QueryResult<RowOf<N>>>;
  /** A query of a plan. */
  perform(call: Query): Promise<QueryResult>;
  sql(text: string): Promise<pg.QueryResult>;
}

export async function sceneOn(server: string, params = ""): Promise<Scene> {
  const url = await freshDatabase(server);
  const stores: Store[] = [];
  const pools: Connections[] = [];
  const hands: pg.PoolClient[] = [];
  const open = async (more = params, log?: Log): Promise<Store> => {
    const store = await openPostgres({ url: url + more, ...(log === undefined ? {} : { log }) });
    stores.push(store);
    return store;
  };
  const store = await open();
  const admin = await adminOf(url);
  const waiting = async (): Promise<number[]> => {
    const { rows } = await admin.query<{ pid: number }>(
      "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return rows.map((row) => row.pid);
  };
  return {
    url,
    store,
    admin,
    open,
    async hand(more = "") {
      const connections = new Connections(parsePostgresUrl(url + more));
      pools.push(connections);
      const client = await connections.connect();
      client.on("error", () => {});
      hands.push(client);
      const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
      return {
        client,
        pid: rows[0]!.pid,
        statement: (name) => connections.statement(name as PostgresName),
        run: (name, values) => connections.query(client, name, values),
        perform: (call) => connections.perform(client, call),
        sql: (text) => client.query(text),
      };
    },
    waiting,
    async untilBlocked(pid) {
      await until(async () => {
        const pids = await waiting();
        return pid === undefined ? pids.length > 0 : pids.includes(pid);
      }, "no process waits for a lock");
    },
    async close() {
      for (const hand of hands) hand.release(true);
      await Promise.all([...stores.map((opened) => opened.close()), ...pools.map((pool) => pool.close())]);
      await admin.end();
      await dropDatabase(url);
    },
  };
}

export async function adminOf(url: string): Promise<pg.Client> {
  const admin = new pg.Client({ connectionString: url, application_name: "admin" });
  admin.on("error", () => {});
  await admin.connect();
  return admin;
}

/** Retries until the check succeeds; the timeout only bounds a failing test. */
export async function until(yes: () => Promise<boolean>, otherwise: string, boundMs = 10_000): Promise<void> {
  const end = Date.now() + boundMs;
  while (!(await yes())) {
    assert.ok(Date.now() < end, otherwise);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The SQLSTATE with which the work fails, or "done". */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "done";
  } catch (error) {
    if (error instanceof TapeError) return error.code;
    return (error as { code?: string }).code ?? String(error);
  }
}

export const lockTimeout = "55P03";

/** A statement that fails rather than wait: "55P03" means that it would have had to. */
export async function impatiently(hand: Pick<Hand, "sql">, work: () => Promise<unknown>): Promise<string> {
  await hand.sql("set lock_timeout = 60");
  const code = await codeOf(work());
  await hand.sql("reset lock_timeout");
  return code;
}

/** The parameters of `fence`. Only SQLite's fence compares the head. */
export const fenced = ({ tenant, journal, token, nonce }: Fence) => ({ tenant, journal, token, nonce, after: null });

/** The parameters of `record.append`. */
export const stepAt = ({ journal, token }: Fence, seq: number) => ({
  journal,
  token,
  seq,
  kind: "step.done",
  body: JSON.stringify({ v: 1, pos: seq, name: "by hand" }),
});

/** The parameters of `lease.take`. */
export const taking = (fence: Fence, previousOwner: string, nonce: bigint) => ({
  journal: fence.journal,
  token: fence.token,
  previousOwner,
  nonce,
  owner: "rival",
  label: "rival",
  reactor: "agent",
  ttlMs: 60_000,
  maxStallMs: null,
  reason: "manual",
});
