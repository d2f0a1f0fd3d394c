import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PostgresServer, startPostgres } from "../../test/postgres/server.ts";
import { createDatabase } from "../peers/places.ts";
import { say } from "../work.ts";
import type { NatsSite, NatsSync } from "./nats.ts";
import { startNatsSite } from "./nats.ts";

export const storeKinds = ["sqlite", "postgres"] as const;
export type StoreKind = (typeof storeKinds)[number];

/** Where the parts of the benchmark keep what they write. Servers start when they are first needed. */
export class EventSite {
  /** Parts that could not be measured, with the reason. */
  readonly notRun: Record<string, string> = {};
  /** The stores to measure. */
  readonly stores: readonly StoreKind[];
  readonly #folder = mkdtempSync(join(tmpdir(), "tape-events-"));
  #postgres: Promise<PostgresServer> | undefined;
  #places = 0;

  constructor(stores: readonly StoreKind[] = storeKinds) {
    this.stores = stores;
  }

  /** The address of a store that is empty. */
  async store(kind: StoreKind): Promise<string> {
    const nr = ++this.#places;
    if (kind === "sqlite") return `sqlite:${join(this.#folder, `store-${nr}.db`)}`;
    this.#postgres ??= startPostgres({ major: 18, settings: {} });
    return createDatabase((await this.#postgres).url, `events_${nr}`);
  }

  /** A path of a file that does not exist. */
  file(name: string): string {
    return join(this.#folder, `${++this.#places}-${name}`);
  }

  /** A NATS server of its own, or undefined where none can be had: then the part is noted as not run. */
  async nats(part: string, sync: NatsSync): Promise<NatsSite | undefined> {
    try {
      return await startNatsSite(sync);
    } catch (error) {
      this.skip(part, error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  skip(part: string, reason: string): void {
    this.notRun[part] = reason;
    say(`NOT RUN ${part}: ${reason}`);
  }

  async close(): Promise<void> {
    await (await this.#postgres)?.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
