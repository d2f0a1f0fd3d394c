import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { anyDatabase } from "../../examples/guarded/any-database.ts";
import { overHttp } from "../../examples/guarded/http.ts";
import * as postgres from "../../examples/guarded/postgres.ts";
import type { Result } from "../../examples/guarded/race.ts";
import { throughARecord } from "../../examples/guarded/record.ts";
import * as sqlite from "../../examples/guarded/sqlite.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

const scratch = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "tape-guarded-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
};
const database = async (): Promise<string> => {
  const url = await freshDatabase(inject("postgres18"));
  onTestFinished(() => dropDatabase(url));
  return url;
};

const cases: Record<string, (guarded: boolean) => Promise<Result>> = {
  "a table in the store's SQLite file": async (guarded) => sqlite.inTheStore(await scratch(), guarded),
  "a table in another SQLite file": async (guarded) => sqlite.elsewhere(await scratch(), guarded),
  "a table in the store's PostgreSQL": async (guarded) => postgres.inTheStore(await database(), guarded),
  "a table in another PostgreSQL": async (guarded) => postgres.elsewhere(await database(), await database(), guarded),
  "any database": async (guarded) => anyDatabase(await scratch(), guarded),
  "an HTTP service": async (guarded) => overHttp(await scratch(), guarded),
};

describe.each(Object.entries(cases))("%s", (_, run) => {
  it("lets the old owner overwrite the new owner's work when unguarded", async () => {
    expect(await run(false)).toEqual({ total: 100, rejected: undefined });
  });

  it("refuses the old owner at the write when guarded", async () => {
    expect(await run(true)).toEqual({ total: 200, rejected: "TAPE_FENCED" });
  });
});

describe("an upstream that cannot compare tokens", () => {
  it("is called twice and accepts a stale result without a recorded call", async () => {
    expect(await throughARecord(await scratch(), false)).toEqual({
      total: 100,
      rejected: undefined,
      printed: [100, 200],
    });
  });

  it("is called once and refuses the stale result with a recorded call", async () => {
    expect(await throughARecord(await scratch(), true)).toEqual({
      total: 100,
      rejected: "TAPE_FENCED",
      printed: [100],
    });
  });
});
