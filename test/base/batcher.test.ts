import { describe, expect, it } from "vitest";
import { Batcher, type BatcherOptions, Channels } from "../../src/base/batcher.ts";
import { systemClock } from "../../src/base/clock.ts";

interface Item {
  readonly tenant: string;
  readonly name: string;
  readonly key?: number;
}
interface Sent {
  readonly names: string[];
  readonly answer: (results?: readonly (string | undefined)[]) => void;
  readonly fail: (error: Error) => void;
}

const item = (name: string, key?: number, tenant = "acme"): Item => ({
  name,
  tenant,
  ...(key === undefined ? {} : { key }),
});
const turn = (): Promise<void> => new Promise((resolve) => systemClock.immediate(resolve));
async function turns(count = 4): Promise<void> {
  for (let k = 0; k < count; k++) await turn();
}

/** A batcher whose batches stay under way until the test answers them. */
function staged(options: Partial<BatcherOptions<Item, string>> = {}) {
  const sent: Sent[] = [];
  const alone: string[] = [];
  const batcher = new Batcher<Item, string>({
    clock: systemClock,
    pending: { pendingItems: 1_000, pendingBytes: 1_000_000 },
    batch: { maxItems: 4, maxBytes: 1_000, minShare: 2 },
    channels: new Channels(2),
    tenant: ({ tenant }) => tenant,
    key: ({ key }) => key,
    bytes: ({ name }) => name.length,
    together: (items) =>
      new Promise((resolve, reject) => {
        const names = items.map(({ name }) => name);
        sent.push({ names, answer: (results = names) => resolve(results), fail: reject });
      }),
    single: async ({ name }) => {
      alone.push(name);
      return `${name} alone`;
    },
    refusal: (reason, waiting) => new Error(`${reason}, ${waiting} waiting`),
    ...options,
  });
  return { batcher, sent, alone, names: () => sent.map(({ names }) => names) };
}

describe("a batcher", () => {
  it("sends what one turn submits together and splits it among free channels", async () => {
    const { batcher, sent, names } = staged();
    const results = Promise.all(["a", "b", "c", "d"].map((name) => batcher.submit(item(name))));
    await turns();
    expect(names()).toEqual([
      ["a", "b"],
      ["c", "d"],
    ]);
    for (const { answer } of sent) answer();
    expect(await results).toEqual(["a", "b", "c", "d"]);
  });

  it("keeps one item of a key in flight, in order", async () => {
    const { batcher, sent, names } = staged();
    const results = Promise.all([
      batcher.submit(item("a", 1)),
      batcher.submit(item("b", 1)),
      batcher.submit(item("c", 1)),
    ]);
    await turns();
    expect(names()).toEqual([["a"]]);
    sent[0]!.answer();
    await turns();
    expect(names()).toEqual([["a"], ["b"]]);
    sent[1]!.answer();
    await turns();
    sent[2]!.answer();
    expect(await results).toEqual(["a", "b", "c"]);
  });

  it("does not let an item wait for another tenant's item of the same key", async () => {
    const { batcher, sent, names } = staged();
    const results = Promise.all([batcher.submit(item("ours", 1)), batcher.submit(item("theirs", 1, "globex"))]);
    await turns();
    expect(names()).toEqual([["ours"], ["theirs"]]); // one batch names a key once
    for (const { answer } of sent) answer();
    expect(await results).toEqual(["ours", "theirs"]);
  });

  it("lets tenants take turns when more items wait than a batch holds", async () => {
    const { batcher, sent, names } = staged({ channels: new Channels(1) });
    const flood = Array.from({ length: 8 }, (_, k) => batcher.submit(item(`flood ${k}`)));
    const other = batcher.submit(item("other", undefined, "globex"));
    await turns();
    expect(names()[0]).toEqual(["flood 0", "other", "flood 1", "flood 2"]);
    for (let k = 0; k < 3; k++) {
      sent[k]!.answer();
      await turns();
    }
    await Promise.all([...flood, other]);
  });

  it("tries items without a result alone and off the channel", async () => {
    const { batcher, sent, alone } = staged({ channels: new Channels(1) });
    const results = Promise.all([batcher.submit(item("a", 1)), batcher.submit(item("b", 2))]);
    await turns();
    sent[0]!.answer(["a", undefined]);
    expect(await results).toEqual(["a", "b alone"]);
    expect(alone).toEqual(["b"]);
  });

  it("rejects all items of a failed batch and frees their keys", async () => {
    const { batcher, sent } = staged();
    const results = Promise.allSettled([batcher.submit(item("a", 1)), batcher.submit(item("b", 2))]);
    await turns();
    sent[0]!.fail(new Error("broken"));
    expect((await results).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    const again = batcher.submit(item("c", 1));
    await turns();
    sent[1]!.answer();
    expect(await again).toBe("c");
  });

  it("grants a shared channel to the batcher that waits", async () => {
    const channels = new Channels(1);
    const [one, two] = [staged({ channels }), staged({ channels })];
    const results = [one.batcher.submit(item("a")), two.batcher.submit(item("b"))];
    await turns();
    expect([one.names(), two.names()]).toEqual([[["a"]], []]);
    const next = one.batcher.submit(item("c"));
    await turns();
    one.sent[0]!.answer();
    await turns();
    expect([one.names(), two.names()]).toEqual([[["a"]], [["b"]]]);
    two.sent[0]!.answer();
    await turns();
    one.sent[1]!.answer();
    expect(await Promise.all([...results, next])).toEqual(["a", "b", "c"]);
    expect(channels.free).toBe(1);
  });

  it("refuses items beyond its bounds and after close, which waits for the rest", async () => {
    const { batcher, sent } = staged({ pending: { pendingItems: 1, pendingBytes: 100 } });
    const first = batcher.submit(item("a"));
    await expect(batcher.submit(item("b"))).rejects.toThrow("full, 1 waiting");
    let closed = false;
    const closing = batcher.close().then(() => {
      closed = true;
    });
    await expect(batcher.submit(item("c"))).rejects.toThrow("closed, 1 waiting");
    await turns();
    expect(closed).toBe(false);
    sent[0]!.answer();
    expect(await first).toBe("a");
    await closing;
  });
});
