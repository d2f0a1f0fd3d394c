import { expect, it, onTestFinished } from "vitest";
import { openStore } from "../../../src/host/open-store.ts";
import { type FakeOptions, startFakeServer } from "../../postgres/fake-server.ts";

/** The servers here are fakes that only return the text of a real one's version(): see startFakeServer. */
const cockroach = "CockroachDB CCL v25.2.1 (x86_64-pc-linux-gnu, built 2025/06/02 15:51:53, go1.23.7)";
const yugabyte = "PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 17.0.6, 64-bit";

it.each<[string, FakeOptions, RegExp]>([
  ["CockroachDB", { version: cockroach }, /key-share lock/],
  ["CockroachDB", { version: cockroach, rejectsOptions: true }, /key-share lock/],
  ["YugabyteDB", { version: yugabyte }, /transaction ids/],
])("a fake %s is recognised and refused before anything is written", async (product, options, reason) => {
  const fake = await startFakeServer(options);
  onTestFinished(() => fake.close());
  const url = `postgres://tape:secret@127.0.0.1:${fake.port}/db`;
  for (const suffix of ["", "?target_session_attrs=read-write"]) {
    const refusal = await openStore(`${url}${suffix}`).catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      code: "TAPE_STORE_UNSUPPORTED",
      message: expect.stringMatching(reason),
      details: { product },
    });
    expect(String(refusal)).not.toContain("secret");
  }
  expect(new Set(fake.statements)).toEqual(new Set(["select version() as version"]));
});

it.each(["bigtable://project/instance/table", "bigtable:x"])("%s names a store that is planned", async (url) => {
  await expect(openStore(url)).rejects.toMatchObject({ code: "TAPE_STORE_PLANNED", retry: "no" });
});
