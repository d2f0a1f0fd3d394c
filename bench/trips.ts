import pg from "pg";
import { openStore } from "../src/host/open-store.ts";
import type { Store } from "../src/store/contract/store.ts";
import { openSpanner } from "../src/store/spanner/open.ts";
import { startPostgres } from "../test/postgres/server.ts";
import type { BenchOptions } from "./run.ts";
import { runPool, say, stepRecord } from "./work.ts";

/** How often a client waits for the server in one run of ten steps: its creation, ten appends and its end. */
interface Trips {
  readonly create: number;
  readonly steps: number;
  readonly end: number;
}

/** On a database in another zone or region each round trip costs milliseconds, whatever the database does. */
export async function benchTrips({ only }: BenchOptions): Promise<object> {
  const figures: Record<string, Trips | string> = {};
  if (only !== "spanner") figures.postgres = await onPostgres();
  if (only !== "postgres") figures.spanner = await onSpanner();
  for (const [name, trips] of Object.entries(figures))
    say(
      typeof trips === "string"
        ? trips
        : `${name}: ${trips.create} to create, ${trips.steps} for ten steps, ${trips.end} to end`,
    );
  return figures;
}

async function tripsOf(store: Store, sent: () => number): Promise<Trips> {
  await runPool(store, 1); // journal numbers are taken in blocks, and connections are opened
  const before = sent();
  const [term] = await runPool(store, 1);
  const created = sent();
  for (let after = 1; after <= 10; after++) await store.fenced.append(term!.fence, { after, records: [stepRecord] });
  const stepped = sent();
  const ended = { kind: "run.ended", data: { status: "COMPLETED", notesTaken: 0, outcome: 1 } } as const;
  await store.fenced.append(term!.fence, { after: 11, records: [ended] });
  return { create: created - before, steps: stepped - created, end: sent() - stepped };
}

async function onPostgres(): Promise<Trips> {
  let sent = 0;
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    sent++;
    return Reflect.apply(query, this, args);
  } as typeof query;
  const server = await startPostgres({ major: 18, settings: {} });
  const store = await openStore(server.url);
  try {
    return await tripsOf(store, () => sent);
  } finally {
    pg.Client.prototype.query = query;
    await store.close();
    await server.stop();
  }
}

interface EmulatorAdmin {
  create(): Promise<string>;
  close(): Promise<void>;
}

/** By its address, so that types are checked without the client, which the package does not install. */
const emulated = (): Promise<{ startAdmin(): Promise<EmulatorAdmin> }> =>
  import(new URL("../test/spanner/database.ts", import.meta.url).href);

/** Needs Google's emulator, and the client that `npm run test:spanner` installs. */
async function onSpanner(): Promise<Trips | string> {
  try {
    await import("../test/spanner/client.ts");
    const admin = await (await emulated()).startAdmin();
    let sent = () => 0;
    const store = await openSpanner({
      url: await admin.create(),
      onOpen: ({ roundTrips }) => {
        sent = () => roundTrips.statements + roundTrips.commits;
      },
    });
    try {
      return await tripsOf(store, () => sent());
    } finally {
      await store.close();
      await admin.close();
    }
  } catch (error) {
    return `NOT RUN spanner: ${(error as Error).message}`;
  }
}
