// The official clients and the conformance suite of the Model Context Protocol, against `durable-tape mcp` and `serve`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore, serve } from "durable-tape";
import { hashOf } from "../../../src/server/token-auth.ts";
import { typeCheck } from "../checks.ts";
import { finish, sumOf } from "../totals.ts";
import { officialClients } from "./clients.ts";
import { conformance } from "./conformance.ts";
import { toolsAsEffects } from "./effects.ts";
import { serveFixtures } from "./fixtures.ts";

const folder = mkdtempSync(join(tmpdir(), "tape-outside-mcp-"));
const url = `sqlite:${join(folder, "tape.db")}`;
const secret = "x".repeat(43);
try {
  const store = await openStore(url);
  const token = { id: "outside", tenant: "default", name: "outside", role: "operator", hash: hashOf(secret) } as const;
  await store.intake.putToken(token, { by: "setup", reason: "an outside test" });
  const closed = await serve({ store, port: 0, credentials: "required", log: "silent" });
  const open = await serve({ store, port: 0, log: "silent" });
  const fixtures = await serveFixtures();
  const totals = sumOf([
    await typeCheck(import.meta.dirname),
    await officialClients({ store: url, server: `${closed.url}/mcp`, token: `outside.${secret}` }),
    await toolsAsEffects(),
    await conformance(`${open.url}/mcp`, "expected-of-server.yml"),
    await conformance(fixtures.url, "expected-of-fixtures.yml"),
  ]);
  fixtures.close();
  await closed.stop(1_000);
  await open.stop(1_000);
  await store.close();
  finish(totals);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
