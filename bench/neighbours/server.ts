import { systemRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { serve } from "../../src/host/serve.ts";
import { mintToken } from "../../src/server/token-auth.ts";
import type { Address } from "./member.ts";

/** A server in its own process; sends its address, and a token for each tenant, to its parent. */
const [url = "", ...tenants] = process.argv.slice(2);
const store = await openStore(url);
const tokens: Record<string, string> = {};
for (const tenant of tenants) {
  const { id, secret, hash } = mintToken(systemRandom);
  const audit = { by: "bench", reason: "bench" };
  await store.intake.putToken({ id, tenant, hash, role: "worker", name: tenant }, audit);
  tokens[tenant] = `${id}.${secret}`;
}
await store.close();
// What is measured is the queues behind the rate, not the rate.
const serving = await serve({
  store: url,
  port: 0,
  credentials: "required",
  limits: { ratePerSecond: 1e6, rateBurst: 1e6 },
});
process.once("SIGTERM", () => void serving.stop());
process.send?.({ url: serving.url, tokens } satisfies Address);
process.disconnect?.();
