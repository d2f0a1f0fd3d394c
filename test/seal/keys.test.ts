import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, describe, expect, it } from "vitest";
import type { Log } from "../../src/base/log.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { AesGcmOptions } from "../../src/seal/aes-gcm.ts";
import type { PayloadCodec } from "../../src/seal/payload-codec.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { testCodec, testKey } from "./codec.ts";

const both = { k1: testKey("k1"), k2: testKey("k2") };
const go = gate<string>("go");
const letter = workflow("letter", async (tape, name: string) => {
  const first = await tape.step("first", () => `dear ${name}`);
  const answer = await tape.gate(go);
  return `${first}, ${answer.status === "received" ? answer.value : ""}`;
});
const charges: string[] = [];
const charge = effect<string, string>("charge", (order) => `${charges.push(order)}`, {
  semantics: "idempotent",
  businessKey: (order) => order,
});
const shop = workflow("shop", async (tape, order: string) => {
  try {
    return await tape.effect(charge.with(order));
  } catch (error) {
    return (error as { code?: string }).code;
  }
});
const runner = createRunner({ workflows: [letter, shop], effects: [charge] });

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function shared(url = "memory:"): Promise<Store> {
  const store = await openStore(url);
  cleanups.push(() => store.close());
  return store;
}

async function open(store: Store, codec: PayloadCodec | undefined, more: { work?: boolean; log?: Log } = {}) {
  const app = await Tape.open({ store, runner, log: "silent", ...more, ...(codec && { codec }) });
  cleanups.push(() => app.close());
  return app;
}

const statusOf = async (store: Store, run: string) => (await store.read.run("default", run))?.status;
const waits = (store: Store, run: string) => expect.poll(() => statusOf(store, run)).toBe("WAITING");
const withKeys = (keys: AesGcmOptions["keys"], current: string) => testCodec({ keys, current });

describe("a key that is rotated", () => {
  it("the run continues under the new key, which still reads what the old one wrote", async () => {
    const store = await shared();
    const before = await open(store, withKeys({ k1: both.k1 }, "k1"));
    await before.start(letter, "ada", { id: "r" });
    await waits(store, "r");
    await before.close();
    const after = await open(store, withKeys(both, "k2"));
    await after.signal("r", go, "bye");
    expect(await (await after.run("r")).result()).toBe("dear ada, bye");
    const records = await store.read.journal("default", { run: "r" });
    const keys = records.flatMap(({ data }) => JSON.stringify(data).match(/"encrypted":"k\d"/g) ?? []);
    expect(new Set(keys)).toEqual(new Set(['"encrypted":"k1"', '"encrypted":"k2"']));
  });

  it("a start that is repeated finds its run, and another input is still a conflict", async () => {
    const store = await shared();
    const before = await open(store, withKeys({ k1: both.k1 }, "k1"));
    await before.start(letter, "ada", { id: "r" });
    const after = await open(store, withKeys(both, "k2"), { work: false });
    expect((await after.start(letter, "ada", { id: "r" })).id).toBe("r");
    await expect(after.start(letter, "bob", { id: "r" })).rejects.toMatchObject({ code: "TAPE_RUN_CONFLICT" });
  });

  it("a business key stays taken", async () => {
    const store = await shared();
    charges.length = 0;
    const before = await open(store, withKeys({ k1: both.k1 }, "k1"));
    await (await before.start(shop, "order-7", { id: "a" })).result();
    await before.close();
    const after = await open(store, withKeys({ k2: both.k2 }, "k2"));
    expect(await (await after.start(shop, "order-7", { id: "b" })).result()).toBe("TAPE_BUSINESS_KEY_TAKEN");
    expect(charges).toEqual(["order-7"]);
    const owner = await after.store.read.businessKeyOwner("default", "charge", "order-7");
    expect(owner?.runId).toBe("a");
  });
});

describe("a key that is not there", () => {
  it("the run is STUCK with the code, stays listed, and a redrive with the key completes it", async () => {
    const store = await shared();
    const before = await open(store, withKeys({ k1: both.k1 }, "k1"));
    await before.start(letter, "ada", { id: "r" });
    await waits(store, "r");
    await before.close();
    const without = await open(store, withKeys({ k2: both.k2 }, "k2"));
    await without.signal("r", go, "bye");
    await expect.poll(() => statusOf(store, "r")).toBe("STUCK");
    const error = await (await without.run("r")).result().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "TAPE_RUN_STUCK", details: { code: "TAPE_KEY_UNKNOWN", key: "k1" } });
    expect((await without.runs.list({})).map(({ id }) => id)).toEqual(["r"]);
    await without.close();
    const after = await open(store, withKeys(both, "k2"));
    await after.redrive("r", { by: "ada", reason: "the key is back" });
    expect(await (await after.run("r")).result()).toBe("dear ada, bye");
  });

  it("a key that is destroyed while its run waits makes the run STUCK without that key", async () => {
    const store = await shared();
    const keys: Record<string, Uint8Array> = { ...both };
    const codec = testCodec({ keys: (id) => keys[id], keyFor: ({ labels }) => labels?.customer ?? "k2" });
    const app = await open(store, codec);
    await app.start(letter, "ada", { id: "r", labels: { customer: "k1" } });
    await waits(store, "r");
    delete keys.k1;
    // Encoded with a key that is there: the run reads it, and cannot write.
    await store.intake.signal("default", "r", { name: "go", value: "bye" });
    await expect.poll(() => statusOf(store, "r")).toBe("STUCK");
    await expect(app.start(letter, "bob", { labels: { customer: "k1" } })).rejects.toMatchObject({
      code: "TAPE_KEY_UNKNOWN",
    });
    keys.k1 = both.k1;
    await app.redrive("r", { by: "ada", reason: "restored" });
    expect(await (await app.run("r")).result()).toBe("dear ada, bye");
  });

  it("a worker without a codec leaves the run to one that has it", async () => {
    const store = await shared();
    const starter = await open(store, testCodec(), { work: false });
    const events: string[] = [];
    await open(store, undefined, {
      log: (_level, event, fields) => void events.push(`${event} ${fields?.code}`),
    });
    await starter.start(letter, "ada", { id: "r" });
    await expect.poll(() => events).toContain("run.drive_lost TAPE_NO_CODEC");
    await expect.poll(() => statusOf(store, "r")).toBe("RUNNABLE");
    const [, last] = (await store.read.journal("default", { run: "r" })).toReversed();
    expect(last?.kind).not.toBe("run.stuck");
  });
});

describe("a ciphertext that is not what was written", () => {
  it.each([
    ["moved from another run", (one: string, other: string) => [one, other] as const],
    ["changed", (one: string) => [one, one.replace(/(?<="data":")[A-Za-z0-9+/]{8}/, "AAAAAAAA")] as const],
  ])("is refused if it was %s, and the run is STUCK", async (_what, swap) => {
    const folder = await mkdtemp(join(tmpdir(), "tape-moved-"));
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, "tape.db");
    const store = await shared(`sqlite:${file}`);
    const starter = await open(store, testCodec(), { work: false });
    await starter.start(letter, "ada", { id: "r" });
    await starter.start(letter, "bob", { id: "other" });
    const db = new DatabaseSync(file);
    const inputOf = (run: string) => {
      const row = db
        .prepare("select body from records where kind = 'run.created' and body like ?")
        .get(`%run:${run}"%`);
      return /\{"v":1,"key":.*?\}/.exec(String(row?.body))![0];
    };
    const [own, other] = swap(inputOf("r"), inputOf("other"));
    const changed = db.prepare("update records set body = replace(body, ?, ?)").run(own, other);
    db.close();
    expect(changed.changes).toBeGreaterThan(0);
    await open(store, testCodec());
    await expect.poll(() => statusOf(store, "r")).toBe("STUCK");
    const app = await open(store, testCodec(), { work: false });
    const error = await (await app.run("r")).result().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ details: { code: "TAPE_PAYLOAD_REFUSED" } });
  });
});

describe("a codec that fails", () => {
  it("a start is refused and writes nothing; a run is tried again until it works", async () => {
    const store = await shared();
    let down = true;
    const inner = testCodec();
    const codec: PayloadCodec = {
      ...inner,
      encode: async (...args) => {
        if (down) throw new Error("the key service at 10.0.0.7 is down");
        return inner.encode(...args);
      },
    };
    const app = await open(store, codec);
    const refused = await app.start(letter, "ada", { id: "r" }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "TAPE_CODEC_FAILED" });
    expect(String(refused)).not.toContain("10.0.0.7");
    expect(await store.read.run("default", "r")).toBeUndefined();
    down = false;
    const run = await app.start(letter, "ada", { id: "r" });
    await waits(store, "r");
    down = true;
    await store.intake.signal("default", "r", { name: "go", value: "bye" });
    await expect.poll(() => statusOf(store, "r")).toBe("RUNNABLE");
    down = false;
    expect(await run.result()).toBe("dear ada, bye");
  });

  it("a codec that returns nonsense is refused with the reason", async () => {
    const store = await shared();
    for (const result of [undefined, { key: "a b", data: new Uint8Array(1) }, { key: "k", data: "text" }]) {
      const app = await open(store, { ...testCodec(), encode: () => result as never }, { work: false });
      await expect(app.start(letter, "ada")).rejects.toMatchObject({ code: "TAPE_CODEC_FAILED" });
    }
    await expect(open(store, {} as never)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
  });
});

describe("a value that is larger than a record", () => {
  const size = 5 * 1024 * 1024;
  const scan = workflow("scan", async (tape) => {
    const bytes = await tape.step("read", () => new Uint8Array(size).fill(7));
    await tape.gate(go);
    return [bytes.length, bytes.at(-1)];
  });
  const scanner = createRunner({ workflows: [scan] });

  it("is stored as a sealed blob, and another process with the key reads it whole", async () => {
    const store = await shared();
    const first = await Tape.open({ store, runner: scanner, codec: testCodec(), log: "silent" });
    cleanups.push(() => first.close());
    const { id } = await first.start(scan, undefined);
    await waits(store, id);
    await first.close();
    const second = await Tape.open({ store, runner: scanner, codec: testCodec(), log: "silent" });
    cleanups.push(() => second.close());
    await second.signal(id, go, "on");
    expect(await (await second.run(id)).result()).toEqual([size, 7]);
    const [read] = (await store.read.journal("default", { run: id })).filter(({ kind }) => kind === "step.done");
    expect(JSON.stringify(read!.data).length).toBeLessThan(1_000);
  });

  it("is refused above the limit of a blob, where its author can handle it", async () => {
    const store = await openStore("memory:", { limits: { blobBytes: 1024 * 1024 } });
    cleanups.push(() => store.close());
    const app = await Tape.open({ store, runner: scanner, codec: testCodec(), log: "silent" });
    cleanups.push(() => app.close());
    const run = await app.start(scan, undefined);
    await expect(run.result()).rejects.toThrow("TAPE_TOO_LARGE");
  });
});
