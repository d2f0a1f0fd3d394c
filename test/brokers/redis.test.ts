import { createClient } from "redis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { TapeEvent } from "../../src/events/event.ts";
import type { Sink } from "../../src/events/sink.ts";
import { redisSink } from "../../src/events/sinks/redis.ts";
import { context, eventOf, feedOf, lane, sequences, upTo } from "./sending.ts";
import { type Broker, startRedis } from "./servers/servers.ts";

describe("the Redis sink on a real server", () => {
  let server: Broker;
  const open = (url: string) =>
    createClient({ url })
      .on("error", () => {})
      .connect();
  let client: Awaited<ReturnType<typeof open>>;
  const sinks: Sink[] = [];
  const sinkOf = (options: object = {}): Sink => {
    sinks.push(redisSink({ url: server.url, ...options }));
    return sinks.at(-1)!;
  };
  beforeAll(async () => {
    server = await startRedis();
    client = await open(server.url);
  });
  afterAll(async () => {
    for (const sink of sinks) await sink.close!();
    client.destroy();
    await server.stop();
  });
  beforeEach(() => client.flushAll());

  const stored = async (key: string): Promise<TapeEvent[]> =>
    (await client.xRange(key, "-", "+"))!.map(({ message }) => JSON.parse(message.event!) as TapeEvent);

  it("appends each run in order, with the fields that a reader filters by", async () => {
    expect(await lane(sinkOf(), feedOf(5, 40))).toEqual({ waits: 0, refused: [] });
    const arrived = await stored("tape");
    expect(arrived).toHaveLength(200);
    for (const run of Object.values(sequences(arrived))) expect(run).toEqual(upTo(40));
    const [first] = (await client.xRange("tape", "-", "+", { COUNT: 1 }))!;
    expect(first!.message).toMatchObject({ id: "100:1:1794848992501", type: "dev.tape.step.done", subject: "run-0" });
  });

  it("uses a client of the program, and leaves it open", async () => {
    const sink = redisSink({ client });
    expect(await lane(sink, feedOf(1, 2))).toEqual({ waits: 0, refused: [] });
    await sink.close!();
    expect(await client.xLen("tape")).toBe(2);
  });

  it("one stream for each journal drops what is sent again; one for all does not", async () => {
    const events = feedOf(3, 10);
    const [each, all] = [sinkOf({ perJournal: true }), sinkOf({ stream: "all" })];
    for (const sink of [each, all]) {
      await lane(sink, events);
      expect(await lane(sink, events.slice(6))).toEqual({ waits: 0, refused: [] });
    }
    for (const journal of [100, 101, 102]) {
      expect(sequences(await stored(`tape:${journal}`))).toEqual({ [`run-${journal - 100}`]: upTo(10) });
    }
    expect(await client.xLen("all")).toBe(30 + 24);
  });

  it("takes what a restored store writes under numbers that it has used before", async () => {
    const sink = sinkOf({ perJournal: true });
    await lane(sink, feedOf(1, 5));
    await lane(
      sink,
      [4, 5].map((seq) => eventOf("run-0", seq, { tapeepoch: 1 })),
    );
    expect((await client.xRange("tape:100", "-", "+"))!.map(({ id }) => id)).toEqual([
      "0-1",
      "0-2",
      "0-3",
      "0-4",
      "0-5",
      "1-4",
      "1-5",
    ]);
  });

  it("keeps a replayed dead letter, which is older than the last entry, beside its journal", async () => {
    const sink = sinkOf({ perJournal: true });
    await lane(sink, feedOf(1, 5));
    await sink.send([eventOf("run-0", 2, { tapereplayed: true })], context());
    expect(await client.xLen("tape:100")).toBe(5);
    expect(sequences(await stored("tape:100:replayed"))).toEqual({ "run-0": [2] });
  });

  it("an inbox counts for itself", async () => {
    const sink = sinkOf({ perJournal: true });
    await lane(sink, [eventOf("run-0", 3), eventOf("run-0", 1, { id: "100i:1:1" })]);
    expect(await Promise.all(["tape:100", "tape:100i"].map((key) => client.xLen(key)))).toEqual([1, 1]);
  });

  it("keeps about as many entries as asked for, and a journal's stream for a while", async () => {
    await lane(sinkOf({ maxLength: 100, stream: "short" }), feedOf(1, 1_000), 500);
    expect(await client.xLen("short")).toBeLessThan(300);
    await lane(sinkOf({ perJournal: true, expireSeconds: 60 }), feedOf(1, 1));
    expect(await client.ttl("tape:100")).toBeGreaterThan(50);
  });

  it("ends a send that gets no answer when the fan-out aborts it, and sends again", async () => {
    const sink = sinkOf({ perJournal: true });
    await lane(sink, feedOf(1, 1));
    server.pause();
    const late = new AbortController();
    const sending = expect(sink.send(feedOf(1, 2), { ...context(), signal: late.signal })).rejects.toThrow("too late");
    late.abort(new Error("too late"));
    await sending;
    server.resume();
    await lane(sink, feedOf(1, 2));
    expect(sequences(await stored("tape:100"))).toEqual({ "run-0": [1, 2] });
  });

  it.each([true, false])(
    "loses nothing while the server is killed (a stream for each journal: %s)",
    async (perJournal) => {
      const sending = lane(sinkOf({ perJournal }), feedOf(5, 2_000), 50);
      const count = async () => (perJournal ? await client.xLen("tape:104") : await client.xLen("tape"));
      await expect.poll(count, { interval: 5 }).toBeGreaterThan(10);
      await server.kill();
      await server.start();
      expect((await sending).waits).toBeGreaterThan(0);
      await expect.poll(() => client.isReady).toBe(true);
      const arrived = perJournal
        ? (await Promise.all(upTo(5).map((k) => stored(`tape:${99 + k}`)))).flat()
        : await stored("tape");
      const runs = Object.values(sequences(arrived));
      expect(runs).toHaveLength(5);
      for (const run of runs) {
        // First arrivals are in order. Only a stream for each journal has no repeats.
        expect([...new Set(run)]).toEqual(upTo(2_000));
        if (perJournal) expect(run).toHaveLength(2_000);
      }
    },
  );
});
