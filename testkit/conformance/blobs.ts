import { strict as assert } from "node:assert";
import { BlobRef, encode, isBlobRef, sizeOf } from "../../src/base/codec.ts";
import { hash } from "../../src/base/late-builtins.ts";
import { chunksOf, withBlobs } from "../../src/store/blob-store.ts";
import { blobChunkChars } from "../../src/store/validate/blobs.ts";
import { audit } from "./foreign-calls.ts";
import { type Cases, forged, record, refused, tenant } from "./frame.ts";
import { begin, ended, type Holder, hold, holdItem, intent } from "./holder.ts";
import { preempting } from "./lease-fixtures.ts";

const blobOf = (text: string): string => hash("sha256", text, "hex");

/** Stores the whole text, in chunks. */
async function put({ store, term }: Holder, text: string, fence = term.fence): Promise<BlobRef> {
  const chunks = chunksOf(text);
  for (const [n, chunk] of chunks.entries()) {
    await store.fenced.putBlob(fence, { blob: blobOf(text), n, chunks: chunks.length, text: chunk });
  }
  return new BlobRef(blobOf(text), sizeOf(text), "text");
}

const made = (pos: number, value: unknown) => record("decision.made", { pos, name: "judge", value });
const image = new Uint8Array(Buffer.alloc(5 * 1024 * 1024, "a tree "));

export const blobs: Cases = ({ it }, fresh) => {
  it("[INV-22] a record with a reference is accepted once its journal has the whole blob", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const text = encode("x".repeat(blobChunkChars + 10));
    const ref = new BlobRef(blobOf(text), sizeOf(text), "text");
    await refused("TAPE_BAD_INPUT", run.write(made(0, { answer: ref })));
    const [first, second] = chunksOf(text);
    const part = { blob: ref.blob, chunks: 2 };
    await store.fenced.putBlob(run.term.fence, { ...part, n: 0, text: first! });
    await refused("TAPE_BAD_INPUT", run.write(made(0, { answer: ref })));
    await store.fenced.putBlob(run.term.fence, { ...part, n: 1, text: second! });
    await store.fenced.putBlob(run.term.fence, { ...part, n: 1, text: second! });
    await refused("TAPE_BAD_INPUT", run.write(made(0, new BlobRef(ref.blob, ref.bytes + 1, "text"))));
    await run.write(made(0, { answer: ref, list: [1, ref] }));
    const last = (await store.read.journal(tenant, { run: run.id })).at(-1)!;
    const { value } = last.data as { value: { answer: BlobRef; list: unknown[] } };
    assert.ok(isBlobRef(value.answer) && isBlobRef(value.list[1]));
    assert.deepEqual({ ...value.answer }, { ...ref });
    const other = await begin(store);
    await refused("TAPE_BAD_INPUT", other.write(made(0, ref)));
    for (const target of [{ run: run.id }, { journal: run.journal }]) {
      assert.deepEqual(await store.read.blob(tenant, target, ref.blob, 1), { chunks: 2, text: second });
      assert.equal(await store.read.blob(tenant, target, ref.blob, 2), undefined);
      assert.equal(await store.read.blob("globex", target, ref.blob, 0), undefined, "another tenant sees nothing");
    }
    assert.equal(await store.read.blob(tenant, { run: other.id }, ref.blob, 0), undefined, "nor does another run");
  });

  it("[INV-22] only the holder of the run stores blobs", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { dispatch: "outbox" }));
    const part = { blob: blobOf("mine"), n: 0, chunks: 1, text: "mine" };
    for (const fence of [
      forged(run.term, { token: run.term.fence.token + 1n }),
      forged(run.term, { nonce: run.term.fence.nonce + 1n }),
      forged(run.term, { tenant: "globex" }),
    ]) {
      await refused("TAPE_FENCED", store.fenced.putBlob(fence, part));
    }
    const item = await holdItem(store, run.id, 0);
    await refused("TAPE_BAD_INPUT", store.fenced.putBlob(item.term.fence, part));
    const successor = await hold(store, run.id, { run: run.id }, preempting);
    await refused("TAPE_FENCED", store.fenced.putBlob(run.term.fence, part));
    assert.equal(await store.read.blob(tenant, { run: run.id }, part.blob, 0), undefined);
    await store.fenced.putBlob(successor.term.fence, part);
    assert.deepEqual(await store.read.blob(tenant, { run: run.id }, part.blob, 0), { chunks: 1, text: "mine" });
  });

  it("chunks that are malformed or too many are refused", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const good = { blob: blobOf("a"), n: 0, chunks: 1, text: "a" };
    for (const bad of [
      { ...good, blob: "a" },
      { ...good, n: 1 },
      { ...good, n: -1 },
      { ...good, chunks: 0 },
      { ...good, text: "" },
      { ...good, text: "a\0" },
      { ...good, text: "\ud800" },
      { ...good, text: 7 as never },
    ]) {
      await refused("TAPE_BAD_INPUT", store.fenced.putBlob(run.term.fence, bad));
    }
    const long = { ...good, text: "a".repeat(blobChunkChars + 1) };
    await refused("TAPE_TOO_LARGE", store.fenced.putBlob(run.term.fence, long));
    await refused("TAPE_TOO_LARGE", store.fenced.putBlob(run.term.fence, { ...good, chunks: 1_000_000 }));
    assert.equal(await store.read.blob(tenant, { run: run.id }, "nonsense", 0), undefined);
  });

  it("a decision of 5 MiB is stored and read back whole; small ones have no blobs", async () => {
    const { store: bare } = fresh();
    const store = withBlobs(bare);
    const run = await begin(store);
    const words = Array.from({ length: 40_000 }, (_, k) => ({ word: `number ${k}`, at: k }));
    const value = { image, text: `\ud83d\ude00\0${"é".repeat(700_000)}`, small: "yes", when: new Date(7) };
    await run.write(made(0, value), record("step.done", { pos: 1, name: "s", value: words }), made(2, { small: 1 }));
    const records = await store.read.journal(tenant, { run: run.id });
    const values = records.map(({ data }) => (data as { value?: unknown }).value);
    assert.deepEqual(values.slice(-3), [value, words, { small: 1 }]);
    const stored = (await bare.read.journal(tenant, { run: run.id })).slice(-3);
    const size = encode(stored.map(({ data }) => data)).length;
    assert.ok(size < 1_000, `the records themselves take ${size} characters`);
    const { image: ref, small } = (stored[0]!.data as { value: { image: unknown; small: unknown } }).value;
    assert.deepEqual([isBlobRef(ref) && ref.type, small], ["bytes", "yes"]);
  });

  it("blobs are counted as bytes of the tenant, and deleted with their run", async () => {
    const { store } = fresh();
    const bytes = async () => (await store.read.quota(tenant)).used.bytes ?? 0;
    const run = await begin(store);
    await put(run, "before the quota ".repeat(100));
    await store.intake.setQuota(tenant, { bytes: 30_000 }, audit);
    const before = await bytes();
    const text = "x".repeat(20_000);
    const ref = await put(run, text);
    assert.ok((await bytes()) >= before + 20_000);
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: 0 }));
    await store.intake.prune(tenant, (await store.read.now()) + 1, 10);
    assert.equal(await store.read.blob(tenant, { journal: run.journal }, ref.blob, 0), undefined);
    assert.ok((await bytes()) <= before, "what was stored before it was measured is not subtracted");
    await store.intake.setQuota(tenant, { bytes: null }, audit);
  });
};
