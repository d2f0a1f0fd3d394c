import type { DatabaseSync } from "node:sqlite";
import { seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { contract, type RouteName } from "../../src/protocol/contract.ts";
import type { Route } from "../../src/protocol/route.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { requestOf } from "./samples.ts";
import { makeScene, tokenOf } from "./scene.ts";
import { stage } from "./stage.ts";

/** Where the exchange of a route is kept. */
export const goldenFile = (name: RouteName): URL => new URL(`./golden/${name}.http`, import.meta.url);

/** Headers that a caller can see; the carrier adds its own. */
const lines = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");

/** SQLite draws what names a store and seals its cursors: here it draws the same every time. */
function openFixed(file: string): DatabaseSync {
  const db = openDatabase(file);
  const random = seededRandom("SQLite");
  db.function("randomblob", (bytes) => random.bytes(Number(bytes)));
  return db;
}

/** One call and its answer as they travel, on a store whose clock and chance are fixed: the same bytes every time. */
export async function exchanged(name: RouteName): Promise<string> {
  const clock = new ManualClock();
  const store = await openStore("memory:", { clock, random: seededRandom("store"), open: openFixed });
  const { server, close } = await stage({ credentials: "required", tenant: "acme", clock, store });
  const scene = await makeScene(store, "acme");
  const { method, url, body } = requestOf(name, scene);
  const route = contract[name] as Route;
  const headers = {
    ...(route.role === "open" ? {} : { authorization: `Bearer ${tokenOf("acme", "admin")}` }),
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(route.repeat === "key" ? { "idempotency-key": "key-1" } : {}),
  };
  const text = body === undefined ? "" : JSON.stringify(body);
  const gone = new AbortController();
  const answer = await server.exchange({
    ...{ method, url, headers, signal: gone.signal },
    ...(body === undefined ? {} : { body: new TextEncoder().encode(text) }),
  });
  const output =
    answer.body instanceof Uint8Array ? Buffer.from(answer.body).toString() : await first(answer.body, name);
  gone.abort();
  await close();
  await store.close();
  return `${method} ${url}\n${lines(headers)}\n\n${text}\n\n${answer.status}\n${lines(answer.headers)}\n\n${output}\n`;

  async function first(stream: AsyncIterable<Uint8Array>, of: RouteName): Promise<string> {
    const next = stream[Symbol.asyncIterator]().next();
    if (of === "store.wakeHints") {
      await store.intake.putValue("acme", scene.key, 2, "unconditional");
      await clock.elapse(10);
    }
    return Buffer.from((await next).value ?? new Uint8Array()).toString();
  }
}
