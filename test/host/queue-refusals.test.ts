import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { serve } from "../../src/host/serve.ts";
import { Tape } from "../../src/host/tape.ts";
import { isTapeError } from "../../src/model/errors.ts";
import type { Term } from "../../src/model/lease.ts";
import { queue } from "../../src/sdk/queue.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { program } from "../cli/stage.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

const tenant = "default";
const audit = { by: "ada", reason: "drill" };
const longKey = "k".repeat(10_240);
const line = queue("line", { concurrency: 1 });
const tight = queue("tight", { concurrency: 1, counts: "started" });
const job = workflow("job", async () => 1);
const runner = createRunner({ workflows: [job], queues: [line, tight] });
const claimant = { owner: "w/1", label: "w", reactor: "recovery", ttlMs: 3_600_000 };
const nested = {
  kind: "child.started",
  data: {
    pos: 0,
    id: "child",
    workflow: "job",
    input: 1,
    inputHash: "h",
    queue: { name: "tight", key: "", priority: 5 },
  },
} as const;

interface Place {
  readonly url: string;
  /** How many rows each table has. */
  rows(): Promise<Record<string, number>>;
  close(): Promise<void>;
}

const countsOf = (tables: readonly string[]): string =>
  tables.map((name) => `select '${name}' as name, count(*) as n from ${name}`).join(" union all ");
/** Without `tape.`, and without the marks of transactions: one that refuses every item of a batch leaves a mark, too. */
const record = (rows: readonly unknown[]): Record<string, number> => {
  const counts = (rows as { name: string; n: number }[]).map(({ name, n }) => [name.replace("tape.", ""), Number(n)]);
  return Object.fromEntries(counts.filter(([name]) => name !== "witness"));
};

async function onSqlite(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), "tape-refusals-"));
  const file = join(folder, "tape.db");
  const reader = () => new DatabaseSync(file, { readOnly: true });
  return {
    url: `sqlite:${file}`,
    rows: async () => {
      using db = reader();
      const tables = db.prepare("select name from sqlite_schema where type = 'table'").all();
      return record(db.prepare(countsOf(tables.map(({ name }) => String(name)))).all());
    },
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

async function onPostgres(): Promise<Place> {
  const url = await freshDatabase(inject("postgres18"));
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    url,
    rows: async () => {
      const { rows } = await client.query("select tablename from pg_tables where schemaname = 'tape'");
      return record((await client.query(countsOf(rows.map(({ tablename }) => `tape.${tablename}`)))).rows);
    },
    close: async () => {
      await client.end();
      await dropDatabase(url);
    },
  };
}

describe.each([
  ["SQLite", onSqlite],
  ["PostgreSQL", onPostgres],
] as const)("bad input about queues, on %s", (_name, openPlace) => {
  let place: Place;
  let store: Store;
  let app: Tape;
  let serving: Awaited<ReturnType<typeof serve>>;
  let parent: Term;

  beforeAll(async () => {
    place = await openPlace();
    store = await openStore(place.url);
    app = await Tape.open({ store, runner, work: false, report: false, log: "silent" });
    serving = await serve({ store, port: 0 });
    await app.start(job, undefined, { id: "parent", queue: tight });
    await app.start(job, undefined, { id: "waits", queue: line });
    const request = { tenant, claimant, nextReactor: "none", staleOf: [], limit: 9, nonce: 7n, workflows: ["job"] };
    [parent] = (await store.claim.find({ ...request, queues: [{ name: "tight", room: 9 }] })) as [Term];
    await program("queues", "--store", place.url); // whatever a first command writes
  });
  afterAll(async () => {
    await serving?.stop();
    await app?.close();
    await store?.close();
    await place?.close();
  });

  const sdk = (work: () => unknown): Promise<unknown> =>
    Promise.resolve()
      .then(work)
      .then(
        () => "accepted",
        (error: unknown) => (isTapeError(error) ? error.code : error),
      );
  let calls = 0;
  const http = async (method: string, path: string, body: object): Promise<unknown> => {
    const headers = {
      "content-type": "application/json",
      "idempotency-key": `call-${++calls}`,
    };
    const response = await fetch(new URL(path, serving.url), { method, headers, body: JSON.stringify(body) });
    const { code, results } = (await response.json()) as { code?: string; results?: { error?: { code: string } }[] };
    return code ?? results?.[0]?.error?.code ?? response.status;
  };
  const cli = async (...args: string[]): Promise<unknown> => {
    const { code, stderr } = await program(...args, "--store", place.url);
    return /TAPE_\w+/.exec(stderr)?.[0] ?? `exit ${code}: ${stderr.split("\n")[0]}`;
  };
  const start = (more: object) => ({ id: "bad", workflow: "job", input: 1, ...more });
  const fence = (): object => {
    const { journal, token, nonce } = parent.fence;
    return { journal, token: String(token), nonce: String(nonce) };
  };
  const pace = { limit: -5, perMs: 60_000, burst: 1 };
  const counts = { concurrency: 1, counts: "started" } as const;

  it.each<[what: string, code: string, call: () => Promise<unknown>]>([
    ["SDK: unknown queue", "TAPE_QUEUE_UNKNOWN", () => sdk(() => app.start(job, undefined, { queue: queue("none") }))],
    ["SDK: priority 0", "TAPE_BAD_INPUT", () => sdk(() => app.start(job, undefined, { queue: line, priority: 0 }))],
    ["SDK: key of 10 kB", "TAPE_TOO_LARGE", () => sdk(() => app.start(job, undefined, { queue: line, key: longKey }))],
    ["SDK: negative rate", "TAPE_BAD_INPUT", () => sdk(() => queue("new", { rate: { limit: -5, per: "1m" } }))],
    [
      "SDK: negative rate set",
      "TAPE_BAD_INPUT",
      () => sdk(() => app.queues.set("line", { rate: { limit: -5, per: "1m" } }, audit)),
    ],
    [
      "SDK: changed counts",
      "TAPE_QUEUE_CHANGED",
      () => {
        const changed = createRunner({ workflows: [job], queues: [queue("line", counts)] });
        return sdk(() => Tape.open({ store, runner: changed, work: false, report: false }));
      },
    ],
    [
      "store: nested queue",
      "TAPE_QUEUE_NESTED",
      () => sdk(() => store.fenced.append(parent.fence, { after: parent.head, records: [nested] })),
    ],
    ["HTTP: unknown queue", "TAPE_QUEUE_UNKNOWN", () => http("POST", "/v1/runs", start({ queue: "none" }))],
    ["HTTP: priority 0", "TAPE_BAD_INPUT", () => http("POST", "/v1/runs", start({ queue: "line", priority: 0 }))],
    ["HTTP: key of 10 kB", "TAPE_BAD_INPUT", () => http("POST", "/v1/runs", start({ queue: "line", key: longKey }))],
    [
      "HTTP: negative rate",
      "TAPE_BAD_INPUT",
      () => http("PUT", "/v1/queues/new", { spec: { counts: "running", rate: pace } }),
    ],
    [
      "HTTP: negative rate set",
      "TAPE_BAD_INPUT",
      () => http("PUT", "/v1/queues/line/override", { change: { rate: pace }, reason: "r" }),
    ],
    ["HTTP: changed counts", "TAPE_QUEUE_CHANGED", () => http("PUT", "/v1/queues/line", { spec: counts })],
    [
      "HTTP: nested queue",
      "TAPE_QUEUE_NESTED",
      () =>
        http("POST", "/v1/store/append", {
          batch: [{ fence: fence(), entry: { after: parent.head, records: [nested] } }],
        }),
    ],
    ["CLI: unknown queue", "TAPE_QUEUE_UNKNOWN", () => cli("start", "job", "--queue", "none")],
    ["CLI: priority 0", "TAPE_BAD_INPUT", () => cli("start", "job", "--queue", "line", "--priority", "0")],
    ["CLI: key of 10 kB", "TAPE_TOO_LARGE", () => cli("start", "job", "--queue", "line", "--key", longKey)],
    [
      "CLI: negative rate set",
      "TAPE_BAD_INPUT",
      () => cli("queue", "set", "line", "--rate=-5/1m", "--reason", "r", "--by", "ada"),
    ],
  ])("%s is refused with %s, and nothing is written", async (_what, code, call) => {
    const before = await place.rows();
    expect(String(await call())).toMatch(new RegExp(`^${code}(: |$)`));
    expect(await place.rows()).toEqual(before);
  });

  it("what is refused is accepted once it is put right: the counts above can change", async () => {
    const before = await place.rows();
    expect(await sdk(() => app.start(job, undefined, { id: "good", queue: line, priority: 1, key: "k" }))).toBe(
      "accepted",
    );
    expect((await place.rows()).runs).toBe(before.runs! + 1);
  });
});
