import pg from "pg";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { dropDatabase, freshDatabase } from "./database.ts";
import { type PostgresProxy, startProxy } from "./proxy.ts";
import { WireSplitter } from "./wire.ts";

let database: string;
let direct: pg.Client;
let proxy: PostgresProxy;
let client: pg.Client;

beforeEach(async () => {
  database = await freshDatabase(inject("postgres18"));
  direct = new pg.Client(database);
  await direct.connect();
  await direct.query("create table ledger (entry text)");
  proxy = await startProxy(database);
  client = await join(proxy.url);
});

afterEach(async () => {
  await client.end().catch(() => {});
  await proxy.close();
  await direct.end();
  await dropDatabase(database);
});

async function join(url: string): Promise<pg.Client> {
  const joined = new pg.Client(url);
  joined.on("error", () => {});
  await joined.connect();
  return joined;
}

async function entries(): Promise<string[]> {
  const { rows } = await direct.query<{ entry: string }>("select entry from ledger order by entry");
  return rows.map((row) => row.entry);
}

describe("a cut after the request", () => {
  it("loses the response of a commit that has happened", async () => {
    const cut = proxy.cutAfterRequest("commit");
    await client.query("begin");
    await client.query("insert into ledger values ($1)", ["kept"]);
    await expect(client.query("commit")).rejects.toThrow(/terminated|ECONNRESET/);
    await cut;
    expect(await entries()).toEqual(["kept"]);
  });

  it("finds a parameter of an extended query and passes the whole request on", async () => {
    const cut = proxy.cutAfterRequest(/needle-\d+/);
    await client.query("insert into ledger values ($1)", ["hay"]);
    await expect(client.query("insert into ledger values ($1)", ["needle-7"])).rejects.toThrow();
    await cut;
    expect(await entries()).toEqual(["hay", "needle-7"]);
  });

  it("takes effect once and leaves other connections alone", async () => {
    const cut = proxy.cutAfterRequest("first");
    await expect(client.query("select 'first'")).rejects.toThrow();
    await cut;
    const next = await join(proxy.url);
    expect((await next.query("select 'first' as word")).rows).toEqual([{ word: "first" }]);
    await next.end();
  });
});

it("a cut before the request keeps it from the server", async () => {
  const cut = proxy.cutBeforeRequest("lost");
  await client.query("insert into ledger values ($1)", ["kept"]);
  await expect(client.query("insert into ledger values ($1)", ["lost"])).rejects.toThrow();
  await cut;
  expect(await entries()).toEqual(["kept"]);
});

it("a hang delays everything and loses nothing", async () => {
  proxy.hang(true);
  let answered = false;
  const late = client.query("insert into ledger values ('late')").then(() => {
    answered = true;
  });
  expect(await entries()).toEqual([]);
  expect(answered).toBe(false);
  proxy.hang(false);
  await late;
  expect(await entries()).toEqual(["late"]);
});

it("a cut that never took effect is an error", async () => {
  const idle = await startProxy(database);
  const cut = idle.cutAfterRequest("never");
  const refused = expect(cut).rejects.toThrow(/closed before it could cut/);
  await idle.close();
  await refused;
});

it("splits messages the same way however the bytes arrive", () => {
  const startup = Buffer.from([0, 0, 0, 8, 0, 3, 0, 0]);
  const query = Buffer.concat([Buffer.from("Q"), Buffer.from([0, 0, 0, 11]), Buffer.from("commit\0")]);
  const bytes = Buffer.concat([startup, query, query]);
  for (let size = 1; size <= bytes.length; size++) {
    const splitter = new WireSplitter("client");
    const texts: string[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      for (const message of splitter.push(bytes.subarray(at, at + size))) texts.push(message.type + message.text);
    }
    expect(texts).toEqual(["\0\u0003\0\0", "Qcommit\0", "Qcommit\0"]);
  }
});
