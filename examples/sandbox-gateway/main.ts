// node examples/sandbox-gateway/main.ts
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "../../src/exports/index.ts";
import { until } from "../until.ts";
import { MemoryBackend } from "./backend.ts";
import { Gateway } from "./gateway.ts";
import { sqliteSandboxes } from "./sandboxes.ts";

/** One replica on SQLite: the file belongs to this process, so the reconciler starts without standing by. */
const folder = await mkdtemp(join(tmpdir(), "gateway-"));
const backend = new MemoryBackend();
const gateway = await Gateway.open({
  store: `sqlite:${join(folder, "tape.db")}?processes=single`,
  runner: createRunner({ workflows: [] }),
  sandboxes: sqliteSandboxes(join(folder, "sandboxes.db")),
  backend,
  ttl: "30s",
  sweepEveryMs: 50,
  graceMs: 200,
});

const phase = async (id: string): Promise<string> =>
  ((await (await fetch(`${gateway.url}/sandboxes/${id}`)).json()) as { phase: string }).phase;
const reaches = async (id: string, expected: string): Promise<void> => {
  await until(async () => ((await phase(id)) === expected ? true : undefined));
  console.log(`${id}: ${expected}`);
};

await fetch(`${gateway.url}/sandboxes/box-1`, { method: "POST" });
console.log(`box-1: ${await phase("box-1")}`);
backend.report({ id: "box-1", condition: "ready", deleting: false });
await reaches("box-1", "Ready");
await fetch(`${gateway.url}/sandboxes/box-1`, { method: "DELETE" });
await reaches("box-1", "Deleting");
backend.vanish("box-1");
await reaches("box-1", "Deleted");
await gateway.close();
await rm(folder, { recursive: true, force: true });
