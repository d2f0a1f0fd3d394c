import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { dropDatabase, freshDatabase } from "./database.ts";
import { startPostgres } from "./server.ts";

async function query(url: string, statement: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on("error", () => {});
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, string>>(statement);
    return rows.map((row) => String(Object.values(row)[0]));
  } finally {
    await client.end();
  }
}

/** A given server may be any supported major version; ours must be exactly the requested one. */
const majors18 = process.env.TAPE_TEST_POSTGRES_URL ? [14, 15, 16, 17, 18] : [18];

describe.each([
  ["postgres14", [14]],
  ["postgres18", majors18],
] as const)("%s", (name, expected) => {
  it("reports its version and keeps what it acknowledged", async () => {
    const url = inject(name);
    const [version] = await query(url, "show server_version_num");
    expect(expected).toContain(Math.floor(Number(version) / 10_000));
    expect(await query(url, "show fsync")).toEqual(["on"]);
    expect(await query(url, "show synchronous_commit")).toEqual(["on"]);
  });

  it("gives each test its own database", async () => {
    const [one, two] = await Promise.all([freshDatabase(inject(name)), freshDatabase(inject(name))]);
    await query(one, "create table only_here (id int)");
    const tables = "select tablename from pg_tables where schemaname = 'public'";
    expect(await query(one, tables)).toEqual(["only_here"]);
    expect(await query(two, tables)).toEqual([]);
    await Promise.all([dropDatabase(one), dropDatabase(two)]);
    await expect(query(one, "select 1")).rejects.toThrow(/does not exist/);
  });
});

it("refuses to drop a database that it did not create", async () => {
  await expect(dropDatabase("postgres://tape@127.0.0.1:1/postgres")).rejects.toThrow(/not made by freshDatabase/);
});

it("takes settings, survives a crash on the same address and is gone after stop", async () => {
  const server = await startPostgres({ major: 18, settings: { max_connections: "11" } });
  const first = server.pid;
  try {
    expect(await query(server.url, "show max_connections")).toEqual(["11"]);
    await query(server.url, "create table kept as select 42 as answer");
    await server.restart("immediate");
    expect(server.pid).not.toBe(first);
    expect(await query(server.url, "select answer from kept")).toEqual(["42"]);
  } finally {
    await server.stop();
  }
  await expect(query(server.url, "select 1")).rejects.toThrow(/ECONNREFUSED/);
});

it("does not outlive a killed parent process", async () => {
  const program = `
    import { startPostgres } from "./server.ts";
    const server = await startPostgres({ major: 18, settings: {} });
    console.log(server.url);
    setInterval(() => {}, 1000);
  `;
  const parent = spawn(process.execPath, ["--input-type=module-typescript", "--eval", program], {
    cwd: fileURLToPath(new URL(".", import.meta.url)),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [url] = (await once(parent.stdout.setEncoding("utf8"), "data")) as [string];
  expect(await query(url.trim(), "select 1")).toEqual(["1"]);
  parent.kill("SIGKILL");
  await once(parent, "exit");
  const answers = () =>
    query(url.trim(), "select 1").then(
      () => true,
      () => false,
    );
  const deadline = Date.now() + 10_000;
  while (Date.now() < deadline && (await answers())) await delay(50);
  expect(await answers()).toBe(false);
});
