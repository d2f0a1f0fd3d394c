import { strict as assert } from "node:assert";
import type { ChunkAppend, NewChunk, Store } from "../../src/store/contract/store.ts";
import { type Cases, forged, refused, tenant, unique } from "./frame.ts";
import { begin, ended, type Holder, hold, holdItem, intent } from "./holder.ts";
import { preempting } from "./lease-fixtures.ts";

const texts = (part: number, ...values: unknown[]): NewChunk[] => values.map((value) => ({ part, value }));
const again = (part: number): NewChunk => ({ part, rewound: true });
const one = (from: number, chunks: readonly NewChunk[], name = "tokens"): ChunkAppend => ({
  streams: [{ name, from, chunks }],
});

async function append({ store, term }: Holder, request: ChunkAppend, fence = term.fence): Promise<void> {
  const [result] = await store.fenced.appendChunks([[fence, request]]);
  if (!result!.ok) throw result!.error;
}

/** Offset and value, or how often the part started again. */
async function shown(store: Store, run: string, from = 0, stream = "tokens", of = tenant): Promise<unknown> {
  const [page] = await store.read.chunks(of, [{ run, stream, from }]);
  return page?.chunks.map((chunk) => [chunk.offset, "value" in chunk ? chunk.value : `again ${chunk.part}`]);
}

export const streams: Cases = ({ it }, fresh) => {
  it("readers get chunks in order, from any offset, until the run has ended and after", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const other = await begin(store);
    assert.deepEqual(await shown(store, run.id), []);
    await append(run, one(0, texts(0, "a", { b: 2n }, undefined)));
    await append(run, {
      streams: [
        { name: "tokens", from: 3, chunks: texts(1, "d") },
        { name: "log", from: 0, chunks: texts(0, "x") },
      ],
    });
    const all = [
      [0, "a"],
      [1, { b: 2n }],
      [2, undefined],
      [3, "d"],
    ];
    assert.deepEqual(await shown(store, run.id), all);
    assert.deepEqual(await shown(store, run.id, 3), all.slice(3));
    assert.deepEqual(await shown(store, run.id, 4), []);
    assert.deepEqual(await shown(store, run.id, 0, "log"), [[0, "x"]]);
    assert.deepEqual(await shown(store, run.id, 0, "tokens", "globex"), undefined, "another tenant sees nothing");
    const pages = await store.read.chunks(tenant, [
      { run: run.id, stream: "tokens", from: 1, limit: 2 },
      { run: unique("none"), stream: "tokens", from: 0 },
      { run: other.id, stream: "tokens", from: 0 },
    ]);
    assert.deepEqual(
      pages[0]!.chunks.map(({ offset, part }) => [offset, part]),
      [
        [1, 0],
        [2, 0],
      ],
    ); // prettier-ignore
    assert.deepEqual([pages[0]!.more, pages[0]!.ended, pages[0]!.journal], [true, false, run.journal]);
    assert.equal(pages[1], undefined);
    assert.deepEqual([pages[2]!.chunks, pages[2]!.more, pages[2]!.ended], [[], false, false]);
    const [log, tokens] = await store.read.streams(tenant, run.id);
    assert.deepEqual([log!.name, log!.next, log!.bytes], ["log", 1, 3]);
    assert.deepEqual([tokens!.name, tokens!.next], ["tokens", 4]);
    assert.deepEqual(await store.read.streams("globex", run.id), []);
    const parts = await store.read.streamParts(tenant, run.id, "tokens");
    assert.deepEqual(
      parts.map(({ part }) => part),
      [0, 1],
    ); // prettier-ignore
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: 0 }));
    const [last] = await store.read.chunks(tenant, [{ run: run.id, stream: "tokens", from: 2 }]);
    assert.deepEqual([last!.chunks.length, last!.more, last!.ended], [2, false, true]);
    await refused("TAPE_FENCED", append(run, one(4, texts(1, "late"))));
  });

  it("[INV-21] only the holder of the run writes chunks", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await append(run, one(0, texts(0, "mine")));
    const successor = await hold(store, run.id, { run: run.id }, preempting);
    for (const fence of [
      run.term.fence,
      forged(successor.term, { nonce: 1n }),
      forged(successor.term, { token: successor.term.fence.token + 1n }),
      forged(successor.term, { tenant: "globex" }),
    ]) {
      await refused("TAPE_FENCED", append(run, one(1, texts(0, "late")), fence));
      await refused("TAPE_FENCED", append(run, one(1, [again(0)]), fence));
      await refused("TAPE_FENCED", append(run, one(0, texts(0, "late"), "other"), fence));
    }
    assert.deepEqual(await shown(store, run.id), [[0, "mine"]]);
    assert.equal((await store.read.streams(tenant, run.id)).length, 1);
    await append(successor, one(1, texts(0, "next")));
    await successor.write(intent(0, { dispatch: "outbox" }));
    const item = await holdItem(store, run.id, 0);
    await refused("TAPE_BAD_INPUT", append(item, one(0, texts(0, "x"))));
    assert.deepEqual(await shown(store, run.id), [
      [0, "mine"],
      [1, "next"],
    ]); // prettier-ignore
  });

  it("a takeover and a chunk at the same moment leave one truth", async () => {
    const { store, another } = fresh();
    const other = await another();
    for (let round = 0; round < 3; round++) {
      const run = await begin(store);
      const [written, successor] = await Promise.all([
        append(run, one(0, texts(0, "old"))).then(
          () => true,
          () => false,
        ), // prettier-ignore
        hold(other, run.id, { run: run.id }, preempting),
      ]);
      const [view] = await other.read.streams(tenant, run.id);
      assert.equal(view?.next ?? 0, written ? 1 : 0);
      await append(successor, one(view?.next ?? 0, texts(0, "new")));
    }
  });

  it("[INV-21] an attempt that is repeated deletes what the part has streamed, and says so", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await append(run, one(0, [...texts(0, "a", "b"), ...texts(7, "other"), ...texts(0, "c")]));
    await append(run, one(4, [again(0), ...texts(0, "A")]));
    const kept = [
      [2, "other"],
      [4, "again 0"],
      [5, "A"],
    ]; // prettier-ignore
    assert.deepEqual(await shown(store, run.id), kept);
    assert.deepEqual(await shown(store, run.id, 3), kept.slice(1));
    await append(run, one(6, [again(0)]));
    assert.deepEqual(await shown(store, run.id), [
      [2, "other"],
      [6, "again 0"],
    ]); // prettier-ignore
    const [{ bytes, next } = { bytes: 0, next: 0 }] = await store.read.streams(tenant, run.id);
    assert.deepEqual([bytes, next], ['"other"'.length, 7], "offsets only grow; bytes count what is there");
    const walked: number[] = [];
    for (let from = 0; ; from = walked.at(-1)! + 1) {
      const [part] = await store.read.chunks(tenant, [{ run: run.id, stream: "tokens", from, limit: 2 }]);
      walked.push(...part!.chunks.map(({ offset }) => offset));
      if (!part!.more) break;
    }
    assert.deepEqual(walked, [2, 6], "a gap in the offsets ends no walk");
    const [page] = await store.read.chunks(tenant, [{ run: run.id, stream: "tokens", from: 0, limit: 1 }]);
    assert.deepEqual([page!.chunks.length, page!.more], [1, true]);
    const parts = await store.read.streamParts(tenant, run.id, "tokens");
    assert.deepEqual(parts, [
      { part: 0, bytes: 0 },
      { part: 7, bytes: 7 },
    ]); // prettier-ignore
  });

  it("a repeated append writes nothing more; a wrong offset is refused", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await append(run, one(0, texts(0, "a", "b")));
    await append(run, one(0, texts(0, "a", "b")));
    await append(run, one(2, [again(0), ...texts(0, "c")]));
    await append(run, one(2, [again(0), ...texts(0, "c")]));
    assert.deepEqual(await shown(store, run.id), [
      [2, "again 0"],
      [3, "c"],
    ]); // prettier-ignore
    await refused("TAPE_NOT_HEAD", append(run, one(5, texts(0, "gap"))));
    await refused("TAPE_NOT_HEAD", append(run, one(1, texts(0, "x"), "new")));
    const next = await hold(store, run.id, { run: run.id }, preempting);
    await refused("TAPE_NOT_HEAD", append(next, one(0, texts(0, "restarted"))));
    await refused("TAPE_NOT_HEAD", append(next, one(3, texts(0, "c"))));
    const items = [one(4, texts(0, "d")), one(9, texts(0, "gap"), "log")] as const;
    const results = await store.fenced.appendChunks(items.map((item) => [next.term.fence, item]));
    assert.deepEqual(
      results.map(({ ok }) => ok),
      [true, false],
    ); // prettier-ignore
    assert.deepEqual(await store.fenced.appendChunks([]), []);
  });

  it("chunks, streams and their number are bounded", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const { chunkBytes, streams: max } = store.limits;
    await refused("TAPE_TOO_LARGE", append(run, one(0, texts(0, "x".repeat(chunkBytes)))));
    await append(run, one(0, texts(0, "é".repeat((chunkBytes - 2) / 2))));
    for (let k = 1; k < max; k++) await append(run, one(0, texts(0, k), `s${k}`));
    await refused("TAPE_TOO_LARGE", append(run, one(0, texts(0, "x"), "one too many")));
    assert.equal((await store.read.streams(tenant, run.id)).length, max);
    const bad: unknown[] = [
      {},
      { streams: [] },
      { streams: [{ name: "", from: 0, chunks: texts(0, 1) }] },
      { streams: [{ name: "t", from: -1, chunks: texts(0, 1) }] },
      { streams: [{ name: "t", from: 0, chunks: [] }] },
      { streams: [{ name: "t", from: 0, chunks: [{ part: 0.5, value: 1 }] }] },
      { streams: [{ name: "t", from: 0, retainMs: 0, chunks: texts(0, 1) }] },
      { streams: [one(1, texts(0, 1)).streams[0], one(2, texts(0, 1)).streams[0]] },
    ];
    for (const request of bad) await refused("TAPE_BAD_INPUT", append(run, request as ChunkAppend));
    await refused("TAPE_BAD_INPUT", append(run, one(0, texts(0, 1)), {} as never));
    await refused(
      "TAPE_NOT_ENCODABLE",
      append(
        run,
        one(
          1,
          texts(0, () => 1),
        ),
      ),
    );
    for (const from of [-1, 0.5, "0"])
      await refused("TAPE_BAD_INPUT", store.read.chunks(tenant, [{ run: run.id, stream: "t", from: from as number }]));
  });

  it("a stream's own retention counts from the end of the run; pruning takes the rest", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    const brief = { name: "brief", from: 0, retainMs: 30, chunks: texts(0, "x") };
    await append(run, { streams: [brief, { name: "tokens", from: 0, chunks: texts(0, "y") }] });
    await elapse(40);
    assert.deepEqual(await shown(store, run.id, 0, "brief"), [[0, "x"]], "the run has not ended");
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: 0 }));
    await elapse(40);
    assert.deepEqual(await shown(store, run.id, 0, "brief"), []);
    assert.deepEqual(
      (await store.read.streams(tenant, run.id)).map(({ name }) => name),
      ["tokens"],
    ); // prettier-ignore
    assert.deepEqual(await shown(store, run.id), [[0, "y"]]);
    await store.intake.prune(tenant, (await store.read.now()) + 1, 10);
    assert.equal(await shown(store, run.id), undefined);
  });

  it("a token reads one stream until it expires", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    const { token, expiresAt } = await store.intake.streamToken(tenant, run.id, "tokens", 60_000);
    assert.deepEqual(await store.read.streamAccess(token), { tenant, run: run.id, stream: "tokens", expiresAt });
    const altered = [
      token.replace(".", ".1"),
      `${token}x`,
      token.slice(0, -1),
      "stream.1.1.a.b",
      "",
      "x".repeat(5_000),
    ];
    for (const wrong of altered) assert.equal(await store.read.streamAccess(wrong), undefined, wrong.slice(0, 80));
    const brief = await store.intake.streamToken(tenant, run.id, "tokens", 10);
    await elapse(20);
    assert.equal(await store.read.streamAccess(brief.token), undefined);
    await refused("TAPE_RUN_NOT_FOUND", store.intake.streamToken(tenant, unique("none"), "tokens", 60_000));
    await refused("TAPE_RUN_NOT_FOUND", store.intake.streamToken("globex", run.id, "tokens", 60_000));
    await refused("TAPE_BAD_INPUT", store.intake.streamToken(tenant, run.id, "tokens", 0));
    await refused("TAPE_BAD_INPUT", store.intake.streamToken(tenant, run.id, "tokens", 1e13));
  });
};
