import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { openStore } from "../../src/host/open-store.ts";
import { migrations } from "../../src/store/spanner/migrate.ts";
import { openSpanner } from "../../src/store/spanner/open.ts";
import { ownEmulator } from "./fixture.ts";
import { schemaFile, schemaText } from "./schema.ts";

const admin = ownEmulator();

it("a migrated store has the committed schema; processes that open it at once do not disturb each other", async () => {
  const url = await admin().create();
  const stores = await Promise.all([openStore(url), openStore(url), openStore(url)]);
  const ids = await Promise.all(stores.map(async (store) => (await store.read.settings()).facts.storeId));
  expect(new Set(ids).size).toBe(1);
  expect((await stores[0]!.read.settings()).schema).toBe(migrations.at(-1)!.number);
  await Promise.all(stores.map((store) => store.close()));
  expect(schemaText(await admin().schema(url))).toBe(readFileSync(schemaFile, "utf8"));
});

it("a newer schema, and a migration that was edited, are refused", async () => {
  const url = await admin().create();
  await (await openStore(url)).close();
  const [first] = migrations;
  const edited = [{ ...first!, checksum: "other" }];
  await expect(openSpanner({ url, migrations: edited, log: silentLog })).rejects.toMatchObject({
    code: "TAPE_SCHEMA_CHANGED",
  });
  await expect(openSpanner({ url, migrations: [] })).rejects.toMatchObject({ code: "TAPE_SCHEMA_NEWER" });
});

it("a database that does not exist cannot be opened", async () => {
  const url = await admin().create();
  await expect(openStore(`${url}-none`)).rejects.toMatchObject({ code: "TAPE_STORE_UNREACHABLE" });
});
