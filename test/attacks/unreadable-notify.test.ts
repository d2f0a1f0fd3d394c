import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import type { WakeHint } from "../../src/store/contract/store.ts";
import { unique } from "../../testkit/conformance/frame.ts";
import { codeOf, type Scene, sceneOn, until } from "../store/postgres/scene.ts";

/** Every role that may connect to a database may send notifications. An unreadable payload once crashed processes. */
let scene: Scene;
let stranger: pg.Client;
const role = `stranger_${randomBytes(6).toString("hex")}`;

beforeAll(async () => {
  scene = await sceneOn(inject("postgres18"));
  await scene.admin.query(`create role ${role} login`);
  const url = new URL(scene.url);
  url.username = role;
  stranger = new pg.Client(url.href);
  await stranger.connect();
});
afterAll(async () => {
  await stranger.end();
  await scene.admin.query(`drop owned by ${role}; drop role ${role}`);
  await scene.close();
});

const payloads = [
  "",
  "not JSON",
  "null",
  "[]",
  "{}",
  '{"from":1,"hints":[]}',
  '{"from":"x","hints":"all"}',
  '{"from":"x","hints":[null]}',
  '{"from":"x","hints":[{"of":"journal","journal":"1"}]}',
  '{"from":"x","hints":[{"of":"value","tenant":{},"key":[]}]}',
  '{"from":"x","hints":[{"of":"reactor"}]}',
  '{"from":"x","hints":[{"of":"__proto__"}]}',
  `{"from":"x","hints":[${Array.from({ length: 200 }, () => '{"of":"any"}').join(",")}]}`,
  `{"from":"x","hints":${"[".repeat(3_000)}${"]".repeat(3_000)}}`,
];

it("unreadable notifications neither crash nor deafen a process, and 500 of them cause few polls", async () => {
  const received: WakeHint[] = [];
  const stop = scene.store.onWake((wake) => received.push(wake));
  await until(async () => received.length > 0, "it does not listen");
  const { rows } = await scene.admin.query<{ channel: string }>("select channel from tape.meta");
  received.length = 0;
  for (const channel of ["tape_tape", rows[0]!.channel]) {
    for (const payload of payloads) await stranger.query("select pg_notify($1, $2)", [channel, payload]);
  }
  await stranger.query("select pg_notify($1, 'x' || n) from generate_series(1, 500) n", [rows[0]!.channel]);
  // A later hint from another process is received.
  const other = await scene.open();
  await other.intake.putValue("acme", unique("key"), 1, "unconditional");
  await until(async () => received.some(({ of }) => of === "value"), "it receives no more hints");
  stop();
  expect(received.filter(({ of }) => of !== "any" && of !== "value")).toEqual([]);
  expect(received.filter(({ of }) => of === "any").length).toBeGreaterThan(0);
  expect(received.filter(({ of }) => of === "any").length).toBeLessThan(50);
});

it("a role without privileges cannot find the channel and receives no hints", async () => {
  expect(await codeOf(stranger.query("select channel from tape.meta"))).toBe("42501");
  const received: unknown[] = [];
  stranger.on("notification", (message) => received.push(message));
  await stranger.query("listen tape; listen tape_tape");
  const reached: WakeHint[] = [];
  const other = await scene.open();
  const stop = other.onWake((wake) => reached.push(wake));
  await until(async () => reached.length > 0, "it does not listen");
  await scene.store.intake.putValue("acme", unique("key"), 1, "unconditional");
  await until(async () => reached.some(({ of }) => of === "value"), "no hint is sent");
  await stranger.query("select 1"); // earlier notifications have arrived by now
  stop();
  expect(received).toEqual([]);
});

it("a hint from another process names the tenant, so that others need not poll", async () => {
  const received: WakeHint[] = [];
  const listener = await scene.open();
  const stop = listener.onWake((wake) => received.push(wake));
  await until(async () => received.length > 0, "it does not listen");
  const other = await scene.open();
  await other.intake.createRuns("globex", [{ id: unique("run"), workflow: "w", input: 1 }]);
  await until(async () => received.some(({ of }) => of === "reactor"), "no hint is sent");
  stop();
  expect(received.filter(({ of }) => of === "reactor")).toEqual([
    { of: "reactor", reactor: "recovery", tenant: "globex", workflow: "w" },
  ]);
});
