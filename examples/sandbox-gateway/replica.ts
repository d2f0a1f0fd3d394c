// TAPE_REPLICA_ID=a node examples/sandbox-gateway/replica.ts postgres://user@host/database http://backend
import { createRunner, jsonLog } from "../../src/exports/index.ts";
import { httpBackend } from "./backend.ts";
import { Gateway } from "./gateway.ts";
import { postgresSandboxes } from "./sandboxes.ts";

const [store = "", backendUrl = ""] = process.argv.slice(2);
const { TAPE_REPLICA_ID: replica = "unnamed", GATEWAY_TTL = "30s", GATEWAY_SWEEP_MS, GATEWAY_GRACE_MS } = process.env;

const gateway = await Gateway.open({
  store,
  runner: createRunner({ workflows: [] }),
  log: jsonLog((line) => process.stderr.write(line), Date.now, "info"),
  sandboxes: await postgresSandboxes(store),
  backend: httpBackend(backendUrl, replica),
  ttl: GATEWAY_TTL as "30s",
  sweepEveryMs: Number(GATEWAY_SWEEP_MS ?? 60_000),
  graceMs: Number(GATEWAY_GRACE_MS ?? 300_000),
});
process.once("SIGTERM", async () => {
  await gateway.close();
  process.exit(0);
});
console.log(JSON.stringify({ url: gateway.url }));
