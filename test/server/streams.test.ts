import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeFence } from "../../src/model/fence.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { makeScene, type Scene } from "./scene.ts";
import { firstLines, type Stage, stage } from "./stage.ts";

let current: Stage;
let scene: Scene;
let clock: ManualClock;

beforeEach(async () => {
  clock = new ManualClock();
  current = await stage({ clock, tenant: "acme" });
  scene = await makeScene(current.store, "acme");
});
afterEach(() => current.close());

const open = (url: string, signal?: AbortSignal) =>
  current.server.exchange({ method: "GET", url, headers: {}, ...(signal === undefined ? {} : { signal }) });

const seqs = (lines: unknown[]) => lines.map((line) => (line as { seq: number }).seq);

/** All chunks, as text, until the stream ends. */
async function read(url: string): Promise<string> {
  const { body } = await open(url);
  let text = "";
  for await (const chunk of body as AsyncIterable<Uint8Array>) text += new TextDecoder().decode(chunk);
  return text;
}

describe("streams", () => {
  it("deliver a run's records live, resume without loss, and end with the run", async () => {
    const { store } = current;
    const url = `/v1/runs/${scene.run}/journal/stream`;
    const first = await firstLines(await open(url), 3);
    expect(seqs(first)).toEqual([1, 2, 3, 4, 5]);
    const rest = open(`${url}?from=4`).then((answer) => firstLines(answer, 3));
    const held = makeFence("acme", scene.journal, BigInt(scene.fence.token), BigInt(scene.fence.nonce));
    await store.fenced.append(held, {
      after: scene.head,
      records: [{ kind: "sample.taken", data: { pos: 9, name: "s", value: 1 } }],
    });
    await clock.elapse(1_000);
    expect(seqs(await rest)).toEqual([4, 5, 6]);
  });

  it("end after the last record of a finished run", async () => {
    const { store } = current;
    const claimant = { owner: "w", label: "w", reactor: "agent", ttlMs: 60_000 };
    const [made] = await store.intake.createRuns("acme", [{ id: "short", workflow: "w", input: 1 }], {
      ...claimant,
      nonce: 5n,
    });
    const stream = read("/v1/runs/short/journal/stream");
    await clock.elapse(10);
    if (!made?.ok || made.term === undefined) throw new Error("not made");
    await store.fenced.append(made.term.fence, {
      ...{
        after: made.term.head,
        records: [{ kind: "run.ended", data: { status: "COMPLETED", outcome: 1, notesTaken: 0 } }],
      },
    });
    await clock.elapse(1_000);
    const kinds = (await stream)
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { kind: string }).kind);
    expect(kinds).toEqual(["run.created", "run.ended"]);
  });

  it("deliver every version of a value, woken by the write", async () => {
    const { store } = current;
    const lines = open(`/v1/values/${scene.key}/stream?after=0`).then((answer) => firstLines(answer, 2));
    await clock.elapse(0);
    await store.intake.putValue("acme", scene.key, "next", "unconditional");
    await clock.elapse(0); // no poll has come yet: it is the hint that wakes
    expect(await lines).toMatchObject([
      { version: 1, value: "canary" },
      { version: 2, value: "next" },
    ]);
  });

  it("refuse versions that are gone or absent before the first line", async () => {
    expect((await open(`/v1/values/${scene.key}/stream?after=7`)).status).toBe(400);
    expect((await open("/v1/runs/missing/journal/stream")).status).toBe(404);
    expect((await open("/v1/leases/missing/stream")).status).toBe(404);
    expect((await open("/v1/feed/stream?cursor=nonsense")).status).toBe(400);
  });

  it("resume the feed after the last record that was read", async () => {
    const all = (await firstLines(await open("/v1/feed/stream"), 1)) as {
      cursor: string;
      journal: number;
      seq: number;
    }[];
    const middle = all[4]!;
    const rest = (await firstLines(await open(`/v1/feed/stream?cursor=${middle.cursor}`), 1)) as typeof all;
    const place = ({ cursor: _, ...record }: (typeof all)[number]) => record; // a cursor is another each time
    expect(rest.map(place)).toEqual(all.slice(5).map(place));
  });

  it("send heartbeats while idle, and end when the server drains", async () => {
    const text = read(`/v1/leases/${scene.lease}/stream?from=100`);
    await clock.elapse(31_000);
    const drained = current.server.drain(1_000);
    await clock.elapse(0);
    expect(await text).toBe("\n\n");
    expect(await drained).toBe(true);
  });

  it("release the store when the caller disconnects", async () => {
    const gone = new AbortController();
    const { body } = await open(`/v1/leases/${scene.lease}/stream?from=100`, gone.signal);
    const next = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]().next();
    expect(current.server.service.streamsOpen).toBe(1);
    gone.abort();
    expect((await next).done).toBe(true);
    expect(current.server.service.streamsOpen).toBe(0);
  });

  it("stop counting an unread stream when its caller disconnects", async () => {
    const gone = new AbortController();
    await open("/v1/feed/stream", gone.signal);
    expect(current.server.service.streamsOpen).toBe(1);
    gone.abort();
    expect(current.server.service.streamsOpen).toBe(0);
  });

  it("read no more from the store than the client consumes", async () => {
    const { store } = current;
    const many = Array.from({ length: 2_500 }, (_one, k) => ({ id: `r${k}`, workflow: "w", input: 1 }));
    await store.intake.createRuns("acme", many);
    let pages = 0;
    const counted = {
      ...store,
      read: {
        ...store.read,
        feed: (...args: Parameters<typeof store.read.feed>) => {
          pages++;
          return store.read.feed(...args);
        },
      },
    };
    const slow = await stage({ clock, tenant: "acme", store: counted });
    const { body } = await slow.server.exchange({ method: "GET", url: "/v1/feed/stream", headers: {} });
    const iterator = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    await iterator.next();
    await clock.elapse(10_000);
    expect(pages).toBeLessThanOrEqual(3); // the cursor check, the page that was read, and at most the next one
    await slow.server.drain(0);
  });
});
