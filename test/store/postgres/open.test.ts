import type pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { maskUrl } from "../../../src/config/mask.ts";
import { Connections } from "../../../src/store/postgres/connections.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { parsePostgresUrl } from "../../../src/store/postgres/url.ts";
import { acquired, claimant, heldRun, request, spec, step, tenant } from "../../../testkit/conformance/frame.ts";
import { dropDatabase, freshDatabase } from "../../postgres/database.ts";
import { adminOf, codeOf, until } from "./scene.ts";

describe("the URL", () => {
  const base = "postgres://u@h:5/db";

  it("loses our parameters and keeps the driver's", () => {
    const settings = parsePostgresUrl(`${base}?schema=other&connections=3&sslmode=disable&transaction_bound_ms=700`);
    expect(settings).toEqual({
      connectionString: `${base}?sslmode=disable`,
      schema: "other",
      pooler: "none",
      listenUrl: undefined,
      connections: 3,
      transactionBoundMs: 700,
      acceptLoss: false,
    });
  });

  it.each(["alloydb://u@h:5/db", "postgresql://u@h:5/db", base])("%s names the same database", (url) => {
    expect(parsePostgresUrl(url)).toMatchObject({ connectionString: base, schema: "tape" });
  });

  it.each([
    ["schem=x", /did you mean schema\?/],
    ["transaction_bound=5", /did you mean transaction_bound_ms\?/],
    ["pool=5", /unknown parameter pool/],
    ["schema=Bad", /lower-case/],
    ["schema=a;drop", /lower-case/],
    ["pooler=session", /none or transaction/],
    ["connections=1", /at least 2/],
    ["connections=many", /whole number/],
    ["transaction_bound_ms=1.5", /whole number/],
    ["accept_loss=yes", /true or false/],
    ["target_session_attrs=any", /read-write or primary, not any/],
    ["target_session_attrs=standby", /on the writable server/],
    ["target_session_attrs=read-write&pooler=transaction", /hides which server answers/],
    ["host=a,b", /several hosts before the path/],
  ])("refuses %s", async (query, message) => {
    const opening = openPostgres({ url: `${base}?${query}` });
    expect(await codeOf(opening)).toBe("TAPE_BAD_STORE_URL");
    await expect(opening).rejects.toThrow(message);
  });

  it("may name several hosts, each with its port", () => {
    const hosts = (text: string) => parsePostgresUrl(text).hosts;
    expect(parsePostgresUrl("postgres://u:p@a,b:6432,[::1]:7000/db?sslmode=disable")).toMatchObject({
      connectionString: "postgres://u:p@a/db?sslmode=disable",
      hosts: [
        { host: "a", port: 5432 },
        { host: "b", port: 6432 },
        { host: "::1", port: 7000 },
      ],
    });
    expect(hosts(`${base}?target_session_attrs=read-write`)).toEqual([{ host: "h", port: 5 }]);
    expect(hosts("alloydb://a,b/db?target_session_attrs=primary")).toHaveLength(2);
    expect(hosts(base)).toBeUndefined();
    expect(maskUrl("postgres://u:p@a:1,b:2/db")).toBe("postgres://u:***@a:1,b:2/db");
    const pooled = `${base}?pooler=transaction&listen_url=${encodeURIComponent("postgres://a,b/db")}`;
    expect(parsePostgresUrl(pooled).listen?.hosts).toHaveLength(2);
  });

  it.each([
    ["postgres://a,b/db?pooler=transaction", /hides which server answers/],
    ["postgres://a,b/db?listen_url=postgres://a/db", /need no listen_url/],
    ["postgres://a,b/db?port=5", /cannot be combined/],
    ["postgres://a,,b/db", /a name or address with an optional port/],
    ["postgres://a,b:x/db", /a name or address with an optional port/],
    ["postgres://a,b:99999/db", /a name or address with an optional port/],
    ["postgres://a:5432,b,a/db", /named twice/],
    [`postgres://${Array.from({ length: 17 }, (_, k) => `h${k}`)}/db`, /at most 16 hosts/],
  ])("refuses the hosts of %s", async (url, message) => {
    const opening = openPostgres({ url });
    expect(await codeOf(opening)).toBe("TAPE_BAD_STORE_URL");
    await expect(opening).rejects.toThrow(message);
  });

  it("rejects text that is no URL", async () => {
    expect(await codeOf(openPostgres({ url: "postgres://[" }))).toBe("TAPE_BAD_STORE_URL");
  });
});

describe("settings of a connection", () => {
  let url: string;
  let name: string;
  let admin: pg.Client;
  beforeAll(async () => {
    url = await freshDatabase(inject("postgres18"));
    name = new URL(url).pathname.slice(1);
    admin = await adminOf(url);
  });
  afterAll(async () => {
    await admin.end();
    await dropDatabase(url);
  });
  const byDefault = (setting: string, value: string) =>
    admin.query(`alter database ${name} set ${setting} = ${value === "default" ? "default" : `'${value}'`}`);

  it("are ours, whatever defaults the database or the role has", async () => {
    const hostile = {
      synchronous_commit: "off",
      statement_timeout: "1",
      default_transaction_isolation: "serializable",
      enable_seqscan: "on",
      plan_cache_mode: "force_custom_plan",
    };
    for (const [setting, value] of Object.entries(hostile)) await byDefault(setting, value);
    const store = await openPostgres({ url: `${url}?transaction_bound_ms=4000` });
    const connections = new Connections(parsePostgresUrl(`${url}?transaction_bound_ms=4000`));
    const client = await connections.connect();
    const show = async (setting: string) => Object.values((await client.query(`show ${setting}`)).rows[0] as object)[0];
    expect(await show("synchronous_commit")).toBe("on");
    expect(await show("statement_timeout")).toBe("4s");
    expect(await show("lock_timeout")).toBe("4s");
    expect(await show("idle_in_transaction_session_timeout")).toBe("4s");
    expect(await show("transaction_isolation")).toBe("read committed");
    expect(await show("enable_seqscan")).toBe("off");
    expect(await show("plan_cache_mode")).toBe("force_generic_plan");
    await client.query(connections.begin(50));
    expect([await show("lock_timeout"), await show("statement_timeout")]).toEqual(["50ms", "50ms"]);
    await client.query("rollback");
    client.release();
    expect((await store.read.settings()).facts).toMatchObject({ synchronousCommit: "on", fsync: "on" });
    await connections.close();
    await store.close();
    for (const setting of Object.keys(hostile)) await byDefault(setting, "default");
  });

  it("are set in each transaction behind a pooler, where a default that loses commits is rejected", async () => {
    const pooled = `${url}?pooler=transaction`;
    const connections = new Connections(parsePostgresUrl(pooled));
    const client = await connections.connect();
    await client.query("set default_transaction_isolation = serializable; set synchronous_commit = off");
    await client.query(connections.begin(5_000));
    const { rows } = await client.query(
      "select current_setting('transaction_isolation') as i, current_setting('synchronous_commit') as s, current_setting('statement_timeout') as t",
    );
    expect(rows).toEqual([{ i: "read committed", s: "on", t: "5s" }]);
    await client.query("rollback");
    client.release(true);
    await connections.close();
    await byDefault("synchronous_commit", "off");
    expect(await codeOf(openPostgres({ url: pooled }))).toBe("TAPE_STORE_NOT_DURABLE");
    await byDefault("synchronous_commit", "default");
  });

  it("two schemas of one database are independent", async () => {
    const [one, two] = await Promise.all(
      ["one", "two"].map((schema) => openPostgres({ url: `${url}?schema=${schema}` })),
    );
    const run = await heldRun(one!, { id: "same" }, claimant(undefined, { ttlMs: 60_000 }));
    await one!.intake.putValue(tenant, "k", 1, "must_create");
    await acquired(one!, request({ name: "lead" }));
    expect(await two!.read.run(tenant, "same")).toBeUndefined();
    expect(await two!.read.value(tenant, "k")).toBeUndefined();
    expect(await two!.read.leases(tenant)).toEqual([]);
    expect(await codeOf(two!.fenced.append(run.fence, { after: 1, records: [step(0)] }))).toBe("TAPE_FENCED");
    expect((await two!.intake.createRuns(tenant, [spec({ id: "same" })]))[0]).toMatchObject({ ok: true, fresh: true });
    expect((await acquired(two!, request({ name: "lead" }))).fence.token).toBe(1n);
    expect((await one!.read.settings()).facts.schemaName).toBe("one");
    await Promise.all([one!.close(), two!.close()]);
  });

  it("leaves no connection behind when closed while it starts to listen", async () => {
    const store = await openPostgres({ url });
    store.onWake(() => {});
    await store.close();
    await until(async () => {
      const { rowCount } = await admin.query(
        "select 1 from pg_stat_activity where datname = current_database() and application_name like 'durable-tape%'",
      );
      return rowCount === 0;
    }, "a connection is still open");
  });

  it("a missing database, server or role is reported as unreachable at once", async () => {
    const elsewhere = (change: (to: URL) => void): string => {
      const to = new URL(url);
      change(to);
      return to.href;
    };
    const nowhere = [
      elsewhere((to) => (to.pathname = "/nothing_here")),
      elsewhere((to) => (to.port = "1")),
      elsewhere((to) => (to.username = "nobody_here")),
    ];
    for (const address of nowhere) expect(await codeOf(openPostgres({ url: address }))).toBe("TAPE_STORE_UNREACHABLE");
  });
});
