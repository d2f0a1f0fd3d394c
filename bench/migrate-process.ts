import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Tape } from "../src/host/tape.ts";
import { createRunner } from "../src/sdk/workflow.ts";
import { migrations } from "../src/store/postgres/migrate.ts";
import { openPostgres } from "../src/store/postgres/open.ts";
import { loadMigrations } from "../src/store/sql/migrations.ts";
import { past } from "./growth-fill.ts";

/** A process of this version or the next one: opens the store, starts runs at a steady rate, drives what is due. */
export type Report =
  | { readonly say: "open"; readonly ms: number }
  | { readonly say: "started"; readonly ms: number; readonly at: number }
  | { readonly say: "failed"; readonly error: string }
  | { readonly say: "log"; readonly level: string; readonly event: string; readonly fields: string }
  | { readonly say: "ended"; readonly good: number };

const [url = "", later = "", perSecond = "1"] = process.argv.slice(2);
const say = (report: Report): void => void process.send?.(report);
let stopping = false;
process.on("message", () => {
  stopping = true;
});

const started = performance.now();
const known = [
  ...migrations,
  ...(later === "" ? [] : loadMigrations(new Map([["9001_later.sql", readFileSync(later, "utf8")]]))),
];
const store = await openPostgres({
  url,
  migrations: known,
  log: (level, event, fields) => say({ say: "log", level, event, fields: JSON.stringify(fields ?? {}) }),
});
say({ say: "open", ms: performance.now() - started });
const app = await Tape.open({
  store,
  runner: createRunner({ workflows: [past] }),
  log: (level, event, fields) => {
    if (level === "warn" || level === "error") say({ say: "log", level, event, fields: JSON.stringify(fields ?? {}) });
  },
});

const results: Promise<boolean>[] = [];
const everyMs = 1_000 / Number(perSecond);
for (let next = performance.now(), k = 0; !stopping; k++) {
  next += everyMs;
  await pause(Math.max(0, next - performance.now()));
  const at = performance.now();
  // Not awaited before the next one: a slow start must not reduce the load that would reveal it.
  const started = app.start(past, k, { id: `${process.pid}-${k}` });
  results.push(
    started
      .then((run) => {
        say({ say: "started", ms: performance.now() - at, at: Date.now() });
        return run.result().then(() => true);
      })
      .catch((error: unknown) => {
        say({ say: "failed", error: String(error) });
        return false;
      }),
  );
}
const good = (await Promise.all(results)).filter(Boolean).length;
await app.close();
await store.close();
say({ say: "ended", good });
process.disconnect?.();
