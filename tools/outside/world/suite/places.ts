import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createWorld, type WorldOptions } from "durable-tape/world";
import { afterAll, afterEach, beforeAll, type TestAPI } from "vitest";
import { type PostgresServer, startPostgres } from "../../../../test/postgres/server.ts";

/** Where the worlds of a file keep what they have. */
export interface Place {
  readonly title: string;
  /** Known once the tests of the file have started. */
  url(): string;
}

/** What registers test cases, and where their worlds are. */
export interface Cases {
  readonly it: TestAPI;
  readonly place: Place;
}

export function sqlitePlace(): Place {
  const folder = mkdtempSync(join(tmpdir(), "tape-world-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  return { title: "SQLite", url: () => `sqlite:${folder}/tape.db` };
}

export function postgresPlace(): Place {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres({ major: 18 });
  });
  afterAll(() => server.stop());
  // The TTL of the tests is short, and no transaction may outlive it.
  return { title: "PostgreSQL", url: () => `${server.url}?transaction_bound_ms=1000` };
}

type TestWorld = ReturnType<typeof createWorld>;
const opened: TestWorld[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((world) => world.close()));
});

let tenants = 0;
/** Of one test: no other test sees what it writes. */
export const newTenant = (): string => `tenant-${process.pid}-${++tenants}`;

/** A world until the test ends: a handle of its own on the store, as another process has it. */
export function open(place: Place, tenant: string, options: WorldOptions = {}): TestWorld {
  const world = createWorld({ store: place.url(), tenant, log: "error", ...options });
  opened.push(world);
  return world;
}
