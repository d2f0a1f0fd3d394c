import { afterAll, afterEach, beforeEach, describe, inject, it } from "vitest";
import { storeConformance } from "../../src/testing/conformance/index.ts";
import { startPooler } from "../postgres/pooler.ts";
import { postgresFixtures } from "./postgres-fixture.ts";
import { freshDatabase } from "../postgres/database.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { openPostgres } from "../../src/store/postgres/open.ts";
void postgresFixtures; void afterAll;
storeConformance("pooler", { describe, it, beforeEach, afterEach }, async () => {
  const direct = await freshDatabase(inject("postgres18"));
  const pooler = await startPooler(direct, { servers: 4 });
  const url = `${pooler.url}?pooler=transaction`;
  const store = await openPostgres({ url });
  const opened = [store];
  return { store, another: async () => { const s = await openPostgres({ url }); opened.push(s); return s; }, elapse: (ms) => sleep(ms), close: async () => { await Promise.all(opened.map((s) => s.close())); await pooler.close(); } };
});
