import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { spec } from "../../testkit/conformance/frame.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { ask, stage } from "../server/stage.ts";

/**
 * A feed cursor was a position among the records of all tenants, or the number of a transaction of the whole database.
 * A reader that polled once a second could measure how much the other tenants wrote.
 */
let url: string;
beforeAll(async () => {
  url = await freshDatabase(inject("postgres18"));
});
afterAll(() => dropDatabase(url));

it.each(["sqlite", "postgres"] as const)("%s: cursors do not reveal how much other tenants write", async (backend) => {
  const open = {
    sqlite: () => openSqlite({ file: ":memory:" }),
    postgres: () => openPostgres({ url }),
  };
  const current = await stage({ store: await open[backend](), credentials: "required", tenant: "home" });
  try {
    await giveTokens(current.store, "acme");
    const token = tokenOf("acme", "admin");
    const get = async (path: string, status = 200): Promise<Record<string, unknown>> => {
      const response = await ask(current.server.exchange, "GET", path, { token });
      expect(response.status, path).toBe(status);
      return response.json as Record<string, unknown>;
    };
    const written = async (count: number): Promise<string> => {
      await current.store.intake.createRuns(
        "globex",
        Array.from({ length: count }, () => spec()),
      );
      await current.store.intake.recordAudit("globex", "busy", { by: "eve", reason: "at work" });
      return String((await get("/v1/feed")).cursor);
    };
    const cursors = [await written(1), await written(1), await written(200), await written(1)];
    // No counter: all cursors differ, have the same length, and contain no number that grows with the writes.
    expect(new Set(cursors).size).toBe(cursors.length);
    expect(new Set(cursors.map(({ length }) => length)).size).toBe(1);
    const beginnings = cursors.map((cursor) => Buffer.from(cursor, "base64url").readUInt32BE(0));
    expect(new Set(beginnings).size, `${beginnings}`).toBe(cursors.length);
    for (const forged of ["0", "1", "1.1.1", `${cursors[0]}A`]) await get(`/v1/feed?cursor=${forged}`, 400);
    const { entries } = (await get("/v1/audit")) as { entries: { cursor: string }[] };
    expect(entries.map(({ cursor }) => Number(cursor))).toEqual(entries.map((_, k) => entries.length - k));
  } finally {
    await current.close();
  }
});
