import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import pg from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { diagnose } from "../../../src/cli/commands/doctor.ts";
import type { Store, WakeHint } from "../../../src/store/contract/store.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { acquired, claimant, heldRun, request, spec, step, tenant } from "../../../testkit/conformance/frame.ts";
import { copy } from "../../../tools/chaos/pair.ts";
import { freshDatabase } from "../../postgres/database.ts";
import { startProxy } from "../../postgres/proxy.ts";
import { freePort, type PostgresServer, startPostgres } from "../../postgres/server.ts";
import { stepOn } from "../caller-outcomes.ts";
import { adminOf, codeOf, until } from "./scene.ts";

/** A primary and its standby, a port that refuses, and one that accepts connections and never answers. */
let [first, second]: PostgresServer[] = [];
let hanging: Server;
let refused: number;
let database: string;
const sockets = new Set<Socket>();
const stores: Store[] = [];
const logged: [string, string, Readonly<Record<string, unknown>>][] = [];

const portOf = ({ url }: PostgresServer): string => new URL(url).port;
const hung = (): number => (hanging.address() as AddressInfo).port;
const password = "never-in-a-log";
/** The standby comes first, then the hosts that do not work. */
const url = (): string => {
  const hosts = [portOf(second!), refused, hung(), portOf(first!)].map((port) => `127.0.0.1:${port}`);
  return `postgres://tape:${password}@${hosts}${database}?target_session_attrs=read-write&transaction_bound_ms=1500`;
};
const at = ({ url: address }: PostgresServer): string => address.replace(/\/[^/]*$/, database);

async function open(address = url()): Promise<Store> {
  const store = await openPostgres({
    url: address,
    log: (level, event, fields = {}) => logged.push([level, event, fields]),
  });
  stores.push(store);
  return store;
}

/** Overdue work is of no interest here, so it is not read twice. */
const atOnce = { ...systemClock, sleep: async () => {} };
const lasting = { claimant: claimant(undefined, { ttlMs: 60_000 }) };
const byForce = { ...lasting, expect: "any", by: "ann", auditReason: "drill" } as const;
const servers = (): unknown[] =>
  logged.filter(([, event]) => event === "store.server").map(([level, , fields]) => [level, fields]);

beforeAll(async () => {
  first = await startPostgres({ major: 18, settings: { wal_keep_size: "64MB" } });
  database = new URL(await freshDatabase(first.url)).pathname;
  const primary = first;
  second = await startPostgres({ major: 18, settings: {}, fill: (data) => copy(primary, data, portOf(primary)) });
  hanging = createServer((socket) => void sockets.add(socket)).listen(0, "127.0.0.1");
  await once(hanging, "listening");
  refused = await freePort();
});
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  for (const socket of sockets) socket.destroy();
  hanging.close();
  await Promise.all([first?.stop(), second?.stop()]);
});

it("a standby listed first, a refusing and a hanging host do not keep a store from the primary", async () => {
  const startedAt = performance.now();
  const store = await open();
  expect(performance.now() - startedAt).toBeLessThan(10_000); // it hangs forever
  const { facts } = await store.read.settings();
  expect(facts.server).toBe(`127.0.0.1:${portOf(first!)}`);
  expect(facts.servers).toMatch(
    /:\d+ is a standby; .*ECONNREFUSED.*(did not answer|timeout expired); .*accepts writes$/,
  );
  expect(servers()).toEqual([["info", { server: facts.server }]]);
  const findings = await diagnose(store, tenant, "postgres://…", atOnce);
  expect(findings.find(({ check }) => check === "servers")).toMatchObject({ state: "warn" });
});

it("a connection that breaks while it is checked is replaced by another", async () => {
  const proxy = await startProxy(at(first!));
  const store = await openPostgres({ url: `${proxy.url}?target_session_attrs=read-write` });
  const cut = proxy.cutAfterRequest("pg_is_in_recovery");
  const reads = Array.from({ length: 8 }, () => store.read.run(tenant, "none")); // more than the pool has connections
  expect(await Promise.all(reads)).toEqual(Array.from({ length: 8 }));
  await cut;
  await store.close();
  await proxy.close();
});

it("without a writable server the error names every host and its reason, and no password", async () => {
  const hosts = [portOf(second!), refused].map((port) => `127.0.0.1:${port}`).join(",");
  const error = await openPostgres({
    url: `postgres://tape:${password}@${hosts}${database}?transaction_bound_ms=9000`,
  }).catch((refusal: unknown) => refusal);
  expect(error).toMatchObject({
    code: "TAPE_STORE_UNREACHABLE",
    message: expect.stringMatching(/no server accepts writes: 127\.0\.0\.1:\d+ is a standby; .*ECONNREFUSED/),
  });
  expect(JSON.stringify([error, String((error as Error).cause), logged])).not.toContain(password);
});

it("after a promotion the same handle finds the new primary, and listens there", async () => {
  const store = stores[0]!;
  const wakes: WakeHint[] = [];
  store.onWake((hint) => wakes.push(hint));
  const lead = await acquired(store, request({ name: "lead" }, lasting));
  const run = await heldRun(store, {}, lasting.claimant);
  await store.fenced.append(run.fence, { after: 1, records: [step(0)] });
  await caughtUp();

  await first!.halt("immediate");
  expect(await codeOf(store.read.run(tenant, "none"))).toBe("TAPE_STORE_UNREACHABLE"); // no read on the standby
  await promote(second!);
  const again = await acquired(store, request({ name: "lead" }, byForce));
  expect(again.fence.token > lead.fence.token + (1n << 39n)).toBe(true); // of the next epoch
  expect(await codeOf(store.fenced.append(run.fence, { after: 2, records: [step(1)] }))).toBe("TAPE_FENCED");
  expect(servers().at(-1)).toEqual([
    "warn",
    { server: `127.0.0.1:${portOf(second!)}`, former: `127.0.0.1:${portOf(first!)}` },
  ]);

  const other = await open();
  await until(async () => {
    wakes.length = 0;
    await other.intake.createRuns(tenant, [spec()]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    return wakes.some((hint) => hint.of === "reactor");
  }, "no wake hint arrives from the new primary");
});

it("a former primary that accepts writes again is neither used nor trusted with a caller's transaction", async () => {
  const store = stores[0]!;
  await first!.resume();
  const error = await openPostgres({ url: at(first!) })
    .then((opened) => opened.close())
    .catch((refusal: unknown) => refusal);
  expect(error).toBeUndefined(); // on its own it is a whole PostgreSQL
  const fresh = await open();
  const { facts } = await fresh.read.settings();
  expect(facts.server).toBe(`127.0.0.1:${portOf(second!)}`); // of two that accept writes, the later timeline
  expect(String(facts.servers).match(/accepts writes/g)).toHaveLength(2);
  const findings = await diagnose(fresh, tenant, "postgres://…", atOnce);
  expect(findings.find(({ check }) => check === "servers")).toMatchObject({ state: "fail" });

  const run = await heldRun(store, {}, lasting.claimant);
  const pool = new pg.Pool({ connectionString: at(first!), max: 1 });
  onTestFinished(() => pool.end());
  const dropped = once(pool, "remove");
  expect(
    await codeOf(
      stepOn(
        store.within!.step(pool, () => "body"),
        run,
      ),
    ),
  ).toBe("TAPE_STORE_UNREACHABLE");
  await dropped; // its next connection may lead to the right server

  // The new primary dies: better none than the former one, which lacks what was written since.
  await second!.halt("immediate");
  const refusal = await store.read.run(tenant, "none").catch((gone: unknown) => gone);
  expect(refusal).toMatchObject({
    code: "TAPE_STORE_UNREACHABLE",
    message: expect.stringMatching(/is a former primary: its timeline is 00000001, and this process has used 00000002/),
  });
  await second!.resume();
  expect(await codeOf(store.read.run(tenant, "none"))).toBe("done");
});

it("a primary that turns read-only loses its connections, for reads too, and gets them back", async () => {
  const store = stores[0]!;
  await first!.halt("fast");
  await Promise.all(Array.from({ length: 4 }, () => store.read.run(tenant, "none"))); // pooled connections
  const admin = await adminOf(at(second!));
  const readOnly = async (on: boolean): Promise<void> => {
    await admin.query(`alter system set default_transaction_read_only = ${on ? "on" : "off"}`);
    await admin.query("select pg_reload_conf()");
  };
  await readOnly(true);
  await until(async () => {
    const { rows } = await admin.query("show default_transaction_read_only");
    return (rows[0] as Record<string, string>).default_transaction_read_only === "on";
  }, "the setting is not loaded");
  expect(await codeOf(acquired(store, request({ name: "lead" }, byForce)))).toBe("TAPE_STORE_UNREACHABLE");
  // A busy server may take longer to answer than the first call waits.
  const refusal = () => store.read.run(tenant, "none").catch((gone: unknown) => gone);
  const reason = { code: "TAPE_STORE_UNREACHABLE", message: expect.stringMatching(/is read-only/) };
  await expect.poll(refusal, { timeout: 15_000 }).toMatchObject(reason);
  await admin.query("set default_transaction_read_only = off");
  await readOnly(false);
  await admin.end();
  expect(await codeOf(store.read.run(tenant, "none"))).toBe("done");
});

async function promote(server: PostgresServer): Promise<void> {
  const admin = await adminOf(server.url);
  expect((await admin.query("select pg_promote()")).rows).toEqual([{ pg_promote: true }]);
  await admin.end();
}

/** The standby has everything that the primary has written. */
async function caughtUp(): Promise<void> {
  const admin = await adminOf(first!.url);
  await until(async () => {
    const { rows } = await admin.query("select 1 from pg_stat_replication where replay_lsn >= pg_current_wal_lsn()");
    return rows.length > 0;
  }, "the standby does not catch up");
  await admin.end();
}
