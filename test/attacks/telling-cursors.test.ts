import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { spec } from "../../testkit/conformance/frame.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { ask, stage } from "../server/stage.ts";

/**
 * A cursor of the feed was a place among the records of all tenants, or the number of a transaction of the whole
 * database: a reader who asked once a second had a curve of how much everybody else wrote.
 */
let url: string;
beforeAll(async () => {
  url = await freshDatabase(inject("postgres18"));
});
afterAll(() => dropDatabase(url));

it.each(["sqlite", "postgres"] as const)("%s: cursors do not tell how much others write", async (backend) => {
  const open = {
    sqlite: () => openSqlite({ file: ":memory:" }),
    postgres: () => openPostgres({ url }),
  };
  const current = await stage({ store: await open[backend](), credentials: "required", tenant: "home" });
  try {
    await giveTokens(current.store, "acme");
    const token = tokenOf("acme", "admin");
    const asked = async (path: string, status = 200): Promise<Record<string, unknown>> => {
      const answer = await ask(current.server.exchange, "GET", path, { token });
      expect(answer.status, path).toBe(status);
      return answer.json as Record<string, unknown>;
    };
    const written = async (count: number): Promise<string> => {
      await current.store.intake.createRuns(
        "globex",
        Array.from({ length: count }, () => spec()),
      );
      await current.store.intake.recordAudit("globex", "busy", { by: "eve", reason: "at work" });
      return String((await asked("/v1/feed")).cursor);
    };
    const cursors = [await written(1), await written(1), await written(200), await written(1)];
    // Nothing of a counter: no two are alike or equally long by chance, and no number grows with what was written.
    expect(new Set(cursors).size).toBe(cursors.length);
    expect(new Set(cursors.map(({ length }) => length)).size).toBe(1);
    const beginnings = cursors.map((cursor) => Buffer.from(cursor, "base64url").readUInt32BE(0));
    expect(new Set(beginnings).size, `${beginnings}`).toBe(cursors.length);
    for (const made of ["0", "1", "1.1.1", `${cursors[0]}A`]) await asked(`/v1/feed?cursor=${made}`, 400);
    const { entries } = (await asked("/v1/audit")) as { entries: { cursor: string }[] };
    expect(entries.map(({ cursor }) => Number(cursor))).toEqual(entries.map((_, k) => entries.length - k));
  } finally {
    await current.close();
  }
});
