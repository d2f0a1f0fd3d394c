import { hash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { retentionLease } from "../../src/model/retention.ts";
import type { Archive } from "../../src/retention/archive.ts";
import { fileArchive } from "../../src/retention/file-archive.ts";
import { type RetentionCounts, type RetentionSettings, retentionPass } from "../../src/retention/pass.ts";
import { archivedRun } from "../../src/retention/read.ts";
import { tenantFolder } from "../../src/retention/write.ts";
import { withBlobs } from "../../src/store/blob-store.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { acquired, claimant, request, step } from "../../testkit/conformance/frame.ts";
import { begin, ended } from "../../testkit/conformance/holder.ts";

const tenant = "acme";
const day = 86_400_000;
const policy = { defaultMs: day };

let clock: ManualClock;
let store: Store;
let folder: string;
let archive: Archive;
let counts: RetentionCounts;
let logged: string[];

beforeEach(async () => {
  clock = new ManualClock();
  store = await openStore("memory:", { clock });
  folder = await mkdtemp(join(tmpdir(), "tape-archive-"));
  archive = fileArchive(folder, { clock, random: systemRandom });
  counts = { runs: 0, bytes: 0, files: 0, failures: 0 };
  logged = [];
});

afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

/** One pass under the lease, as a new holder. */
async function pass(settings: Partial<RetentionSettings> & { ops?: Partial<Store["retention"]>; of?: string } = {}) {
  const { ops, of = tenant, ...more } = settings;
  const claim = { claimant: claimant(), expect: "any", by: "test", auditReason: "takeover" } as const;
  const { fence } = await acquired(store, request({ name: retentionLease }, claim), of);
  return retentionPass(
    {
      ...{ store, fence, clock, counts, ops: { ...store.retention!, ...ops } },
      signal: new AbortController().signal,
      log: (_level, event) => logged.push(event),
      progress: () => {},
    },
    { policy, archive, ...more },
  );
}

async function endedRuns(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let k = 0; k < count; k++) {
    const run = await begin(store);
    await run.write(step(0, { card: `secret ${k}` }), ended("COMPLETED", { outcome: k }));
    ids.push(run.id);
  }
  return ids;
}

const overdue = (): Promise<void> => clock.elapse(2 * day);

async function files(): Promise<string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}

type Raw = readonly (readonly [seq: unknown, body: string])[];

/** The records of each run, as the store has them. */
async function journalsOf(ids: readonly string[]): Promise<Map<string, Raw>> {
  const read = async (id: string): Promise<[string, Raw]> => {
    const { journal } = (await store.read.run(tenant, id))!;
    return [id, (await store.retention!.records(tenant, [journal], {})).map(({ seq, body }) => [seq, body])];
  };
  return new Map(await Promise.all(ids.map(read)));
}

/** Every run is in the store or, byte by byte, in the file that its tombstone names. */
async function expectNothingLost(before: ReadonlyMap<string, Raw>): Promise<number> {
  let archived = 0;
  for (const [id, journal] of before) {
    if ((await store.read.run(tenant, id)) !== undefined) continue;
    const [tombstone] = await store.read.archived(tenant, { id });
    const lines = await Array.fromAsync(archivedRun(archive, tombstone!.archive, id));
    const records = lines.filter(({ type }) => type === "record");
    expect(records.map(({ seq, data }) => [seq, JSON.stringify(data)])).toEqual(journal);
    archived++;
  }
  return archived;
}

describe("a pass of retention", () => {
  it("moves what is due into one file of the tenant, and leaves the rest", async () => {
    const old = await endedRuns(3);
    await overdue();
    const young = await endedRuns(1);
    const live = await begin(store);
    const before = await journalsOf(old);
    expect(await pass()).toMatchObject({ runs: 3, files: 1, kept: {} });
    expect(await expectNothingLost(before)).toBe(3);
    expect((await store.read.runs(tenant)).map(({ id }) => id).sort()).toEqual([...young, live.id].sort());
    const [file, ...others] = await files();
    expect(others).toEqual([]);
    expect((await stat(file!)).mode & 0o777).toBe(0o600);
    const [header] = gunzipSync(await readFile(file!))
      .toString()
      .split("\n");
    expect(JSON.parse(header!)).toMatchObject({ type: "archive", version: 1, tenant, trees: 3, runs: 3 });
    expect(counts).toMatchObject({ runs: 3, files: 1, failures: 0 });
    expect(await pass()).toMatchObject({ runs: 0, files: 0 });
    expect((await store.read.retention(tenant)).state).not.toHaveProperty("pending");
  });

  it("deletes only what the archive confirms", async () => {
    const before = await journalsOf(await endedRuns(2));
    await overdue();
    const lying: Archive = { ...archive, put: async () => {}, has: async () => false };
    await expect(pass({ archive: lying })).rejects.toMatchObject({ code: "TAPE_ARCHIVE" });
    const truncating: Archive = {
      ...archive,
      put: (name, body) =>
        archive.put(
          name,
          (async function* () {
            for await (const chunk of body) yield chunk.subarray(0, chunk.length - 1);
          })(),
        ),
    };
    await expect(pass({ archive: truncating })).rejects.toMatchObject({ code: "TAPE_ARCHIVE" });
    const failing: Archive = { ...archive, put: async () => Promise.reject(new Error("no space left")) };
    await expect(pass({ archive: failing })).rejects.toThrow("no space left");
    expect((await store.read.runs(tenant)).length).toBe(2);
    expect((await store.read.retention(tenant)).state?.last?.error).toContain("no space left");
    await pass();
    expect(await expectNothingLost(before)).toBe(2);
  });

  it("writes the same bytes again after a crash between the archive and the store", async () => {
    const before = await journalsOf(await endedRuns(2));
    await overdue();
    const crash = { prune: () => Promise.reject(new Error("killed")) };
    await expect(pass({ ops: crash })).rejects.toThrow("killed");
    const [first] = await files();
    const bytes = hash("sha256", await readFile(first!));
    await endedRuns(1);
    await clock.elapse(day / 2);
    await pass();
    expect(await files()).toEqual([first]);
    expect(hash("sha256", await readFile(first!))).toBe(bytes);
    expect(await expectNothingLost(before)).toBe(2);
  });

  it("removes the file of a crashed pass whose trees are no longer the same", async () => {
    const [first, second] = await endedRuns(2);
    const before = await journalsOf([first!, second!]);
    await overdue();
    await expect(pass({ ops: { prune: () => Promise.reject(new Error("killed")) } })).rejects.toThrow("killed");
    const [written] = await files();
    await store.intake.prune(tenant, await store.read.now(), 1);
    await pass();
    expect(await files()).toHaveLength(1);
    expect(await files()).not.toEqual([written]);
    before.delete((await store.read.archived(tenant, { id: first! })).length === 0 ? first! : second!);
    expect(await expectNothingLost(before)).toBe(1);
  });

  it("removes no file that its successor has written", async () => {
    const ids = await endedRuns(2);
    const before = await journalsOf(ids);
    await overdue();
    await expect(pass({ ops: { prune: () => Promise.reject(new Error("killed")) } })).rejects.toThrow("killed");
    // The second pass is paused after its read of what is due, which lacks a tree that is there again later.
    const due: NonNullable<Store["retention"]>["due"] = async (...args) => {
      const trees = (await store.retention!.due(...args)).slice(1);
      await pass();
      return trees;
    };
    await expect(pass({ ops: { due } })).rejects.toMatchObject({ code: "TAPE_FENCED" });
    expect(await expectNothingLost(before)).toBe(2);
  });

  it("writes one checkpoint with each file", async () => {
    const before = await journalsOf(await endedRuns(7));
    await overdue();
    let checkpoints = 0;
    const { checkpoint } = store.fenced;
    store.fenced.checkpoint = (...args) => {
      checkpoints++;
      return checkpoint.apply(store.fenced, args);
    };
    expect(await pass({ batch: 2 })).toMatchObject({ runs: 7, files: 4 });
    expect(checkpoints).toBe(2); // after the dates, and before the first file
    expect(await expectNothingLost(before)).toBe(7);
    expect((await store.read.retention(tenant)).state).not.toHaveProperty("pending");
  });

  it("reads a tree again that changed while it was archived", async () => {
    const [id] = await endedRuns(1);
    await overdue();
    let changes = 1;
    const due: NonNullable<Store["retention"]>["due"] = async (...args) => {
      const trees = await store.retention!.due(...args);
      if (changes-- <= 0) return trees;
      return trees.map((tree) => ({ ...tree, journals: tree.journals.map((one) => ({ ...one, seq: one.seq - 1 })) }));
    };
    expect(await pass({ ops: { due } })).toMatchObject({ runs: 1, files: 1 });
    expect(logged).toContain("retention.changed");
    expect(await files()).toHaveLength(1);
    const [tombstone] = await store.read.archived(tenant, { id: id! });
    expect((await Array.fromAsync(archivedRun(archive, tombstone!.archive, id!))).length).toBeGreaterThan(3);
  });

  it("has records, streams and large parts of a run of any length", async () => {
    const run = await begin(withBlobs(store));
    for (let k = 0; k < 25; k++) await run.write(...Array.from({ length: 100 }, (_, n) => step(k * 100 + n)));
    await run.write(step(9_999, "x".repeat(100_000)));
    await store.fenced.appendChunks([
      [run.term.fence, { streams: [{ name: "log", from: 0, chunks: [{ part: 0, value: "hello" }] }] }],
    ] as never);
    await run.write(ended("COMPLETED", { outcome: 1 }));
    await overdue();
    await pass();
    const name = (await store.read.archived(tenant))[0]!.archive;
    const lines = await Array.fromAsync(archivedRun(archive, name, run.id));
    const of = (type: string) => lines.filter((line) => line.type === type);
    expect(of("record").map(({ seq }) => seq)).toEqual(Array.from({ length: 2_503 }, (_, k) => k + 1));
    expect(of("blob")).toHaveLength(1);
    expect(of("chunk")).toMatchObject([{ stream: "log", value: "hello" }]);
  });

  it("stays within a tenant's folder, whatever its name", async () => {
    expect(tenantFolder("..")).toBe("%2e%2e");
    expect(tenantFolder("a/b")).toBe("a%2fb");
    expect(tenantFolder("ü".repeat(300)).length).toBeLessThan(140);
    expect(tenantFolder("ü".repeat(300))).not.toBe(tenantFolder("ü".repeat(301)));
    await expect(archive.get("../etc/passwd")).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    await expect(archive.put("a/.hidden", (async function* () {})())).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    await endedRuns(1);
    await overdue();
    expect(await pass({ of: "globex" })).toMatchObject({ runs: 0 });
    expect(await files()).toEqual([]);
  });

  it("dates runs again when the policy changes", async () => {
    await endedRuns(2);
    await overdue();
    expect(await pass({ policy: {} })).toMatchObject({ runs: 0 });
    expect(await pass({ policy: { workflows: { other: 1 } } })).toMatchObject({ runs: 0 });
    expect(await pass({ policy })).toMatchObject({ runs: 2 });
  });

  it("removes temporary files that a crashed process left long ago", async () => {
    await endedRuns(1);
    await overdue();
    await pass();
    const left = `${(await files())[0]!}.x.tmp`;
    await writeFile(left, "half");
    clock.stepWall(Date.now() - clock.wall() + 2 * 3_600_000);
    const again = fileArchive(folder, { clock, random: systemRandom });
    const name = (await store.read.archived(tenant))[0]!.archive;
    await again.put(name, (await archive.get(name))!);
    expect(await files()).not.toContain(left);
  });
});
