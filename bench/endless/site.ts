import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PostgresServer, startPostgres } from "../../test/postgres/server.ts";
import { createDatabase } from "../peers/places.ts";
import { say } from "../work.ts";

export const storeKinds = ["sqlite", "postgres"] as const;
export type StoreKind = (typeof storeKinds)[number];

/** Where the parts of the benchmark keep what they write. The server starts when it is first needed. */
export class EndlessSite {
  /** Parts that could not be measured, with the reason. */
  readonly notRun: Record<string, string> = {};
  /** The stores to measure. */
  readonly stores: readonly StoreKind[];
  /** The commit that figures are compared with. */
  readonly base: string;
  readonly folder = mkdtempSync(join(tmpdir(), "tape-endless-"));
  #postgres: Promise<PostgresServer> | undefined;
  #places = 0;

  constructor(stores: readonly StoreKind[], base: string) {
    this.stores = stores;
    this.base = base;
  }

  /** The address of a store that is empty. */
  async store(kind: StoreKind): Promise<string> {
    return kind === "sqlite" ? `sqlite:${this.file("store.db")}` : this.database();
  }

  /** The address of an empty database on the PostgreSQL server. */
  async database(): Promise<string> {
    this.#postgres ??= startPostgres({ major: 18, settings: {} });
    return createDatabase((await this.#postgres).url, `endless_${++this.#places}`);
  }

  /** A path of a file that does not exist. */
  file(name: string): string {
    return join(this.folder, `${++this.#places}-${name}`);
  }

  skip(part: string, reason: string): void {
    this.notRun[part] = reason;
    say(`NOT RUN ${part}: ${reason}`);
  }

  async close(): Promise<void> {
    await (await this.#postgres)?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
