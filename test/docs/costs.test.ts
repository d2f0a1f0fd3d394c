import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { defaultReplayTimeoutMs } from "../../src/engine/drive/stalled.ts";
import { sendWindowMs } from "../../src/engine/effects/send-window.ts";
import { preloadMs } from "../../src/engine/run-driver.ts";
import { timingsOf } from "../../src/lease/timings.ts";
import { defaultIdleMs } from "../../src/reactor/runner.ts";
import { effect } from "../../src/sdk/effect.ts";
import { parsePostgresUrl } from "../../src/store/postgres/url.ts";

const page = readFileSync(new URL("../../docs/costs.md", import.meta.url), "utf8");

/** The second column of the row with this name. */
function defaultOf(name: string): string {
  const row = page.split("\n").find((line) => line.startsWith(`| ${name} |`));
  if (row === undefined) throw new Error(`docs/costs.md has no row ${name}`);
  return row.split("|")[2]!.trim();
}
const s = (ms: number): string => `${Math.round(ms) / 1_000} s`;

it("docs/costs.md has the default times of the code", () => {
  const timings = timingsOf({}, 0);
  const { definition } = effect("call", async () => {}, { allowUnsafe: "a test" });
  const idempotent = effect("again", async () => {}, { semantics: "idempotent" }).definition;
  const read = effect("read", async () => {}, { semantics: "read" }).definition;
  const windowMs = sendWindowMs({ timings }, 0);
  expect(defaultOf("lease TTL")).toBe(s(timings.ttlMs));
  expect(defaultOf("heartbeat")).toContain(`${s(timings.heartbeatMs)}, a third`);
  expect(defaultOf("trust")).toContain(`${s(timings.trustMs)}, five sixths`);
  expect(defaultOf("start window")).toContain(`${s(windowMs)}, or the TTL`);
  expect(defaultOf("time-out of an effect")).toBe(s(definition.timeoutMs));
  expect(defaultOf("settle delay")).toBe(s(definition.settleDelayMs));
  const proofMs = windowMs + definition.timeoutMs + definition.settleDelayMs;
  expect(defaultOf("proof of absence")).toContain(`${s(proofMs)} after the intent`);
  expect(defaultOf("retries of an effect")).toContain(
    `${idempotent.attempts} attempts (\`idempotent\`), ${read.attempts} (\`read\`), ${definition.attempts} (\`non_idempotent\``,
  );
  const { baseMs, capMs } = definition.backoff;
  expect(defaultOf("retries of an effect")).toContain(`pauses from ${s(baseMs)}, doubling, up to ${s(capMs)}`);
  expect(defaultOf("sent again after a proven absence")).toBe(
    `${definition.absentRetries} times inline, never from the outbox`,
  );
  expect(defaultOf("patience of a replay")).toBe(s(defaultReplayTimeoutMs));
  expect(defaultOf("preload of a sleep")).toBe(s(preloadMs));
  expect(defaultOf("poll")).toContain(`up to ${s(defaultIdleMs)} while idle`);
  expect(defaultOf("transaction bound (PostgreSQL)")).toBe(s(parsePostgresUrl("postgres://a@b/c").transactionBoundMs));
});
