import { expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { followFeed } from "../../src/store/follow-feed.ts";
import { FollowPace } from "../../src/store/follow-pace.ts";
import { claimant, heldRun, step, tenant } from "../../testkit/conformance/frame.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";

it("pauses 10 ms, then longer up to 250 ms while records come, and up to a second later", () => {
  const time = new VirtualTime();
  let now = 0;
  const pace = new FollowPace({ ...time, mono: () => now } as VirtualTime, 1_000);
  const pauses = (count: number): number[] =>
    Array.from({ length: count }, () => {
      const pauseMs = pace.next();
      now += pauseMs;
      return pauseMs;
    });
  expect(pauses(3)).toEqual([1_000, 1_000, 1_000]);
  pace.came();
  expect(pauses(8)).toEqual([10, 20, 40, 80, 160, 250, 250, 250]);
  now += 10_000;
  expect(pauses(4)).toEqual([250, 500, 1_000, 1_000]);
  pace.came();
  expect(pauses(1)).toEqual([10]);
});

it("a follower receives steps, which give no hint, within 250 ms, and polls once a second when idle", async () => {
  const time = new VirtualTime();
  const store = await openStore("memory:", { clock: time });
  onTestFinished(() => store.close());
  const run = await time.during(heldRun(store, {}, claimant(undefined, { ttlMs: 3_600_000 })));
  const stopped = new AbortController();
  const delays: number[] = [];
  const written: number[] = [];
  let polls = 0;
  const feed: typeof store.read.feed = (...args) => {
    polls++;
    return store.read.feed(...args);
  };
  const watched = { onWake: store.onWake, read: { ...store.read, feed } };
  const following = (async () => {
    for await (const { seq } of followFeed(watched, time, { tenant, signal: stopped.signal })) {
      if (seq > 1) delays.push(time.now - written[seq - 2]!);
    }
  })();
  await time.during(
    (async () => {
      await time.sleep(5_000);
      for (let k = 0; k < 20; k++) {
        written.push(time.now);
        await store.fenced.append(run.fence, { after: 1 + k, records: [step(k)] });
        await time.sleep(730);
      }
      await time.sleep(15_000);
      const before = polls;
      await time.sleep(60_000);
      expect(polls - before).toBeLessThanOrEqual(61);
      stopped.abort();
      await following;
    })(),
  );
  expect(delays.length).toBe(20);
  expect(Math.max(...delays.slice(1))).toBeLessThanOrEqual(250);
});
