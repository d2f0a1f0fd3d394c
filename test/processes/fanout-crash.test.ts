import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, type TestContext } from "vitest";
import { feedIds, killFanouts, startFanout, writeLoad } from "../../bench/events/kill.ts";
import { judge, Receiver } from "../../bench/events/receiver.ts";
import { systemClock } from "../../src/base/clock.ts";
import { openStore } from "../../src/host/open-store.ts";
import { readCheckpoint } from "../../src/model/sink-checkpoint.ts";

const tenant = "default";
const ttlMs = 800;

async function urlOn(test: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tape-fanout-"));
  test.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return `sqlite:${join(folder, "tape.db")}`;
}

it("kill -9 of a fan-out under load loses nothing and keeps the order of every journal", async (test) => {
  const url = await urlOn(test);
  const { lost, outOfOrder, repeats, events } = await killFanouts({ url, ttlMs, kills: 1, rate: 300 });
  expect(events).toBeGreaterThan(100);
  expect({ lost, outOfOrder }).toEqual({ lost: 0, outOfOrder: 0 });
  expect(repeats).toBeLessThanOrEqual(1_000);
}, 30_000);

it("a zombie's batch carries the lower token, and its checkpoint is refused", async (test) => {
  const url = await urlOn(test);
  const [store, receiver] = [await openStore(url), new Receiver()];
  const address = await receiver.listen();
  const stop = new AbortController();
  test.onTestFinished(async () => {
    stop.abort();
    receiver.close();
    await store.close();
  });
  // The first request stays in flight until it is released.
  let release = (): void => {};
  const held = new Promise<number>((resolve) => {
    release = () => resolve(204);
  });
  let first = true;
  let arrived = (): void => {};
  const inFlight = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  receiver.respond = () => {
    if (!first) return 204;
    first = false;
    arrived();
    return held;
  };
  const zombie = await startFanout(url, address, ttlMs);
  test.onTestFinished(() => void zombie.kill("SIGKILL"));
  const load = writeLoad(store, 150, stop.signal);
  await inFlight;
  zombie.kill("SIGSTOP");
  while ((await store.read.lease(tenant, { name: "sink ledger" }))?.state !== "EXPIRED") await systemClock.sleep(20);
  const successor = await startFanout(url, address, ttlMs);
  test.onTestFinished(() => void successor.kill("SIGKILL"));
  await receiver.until((ledger) => ledger.some(({ token }) => token > 1n));
  stop.abort();
  await load;
  const before = receiver.ledger.length;
  release(); // the zombie's batch arrives behind the successor's
  await receiver.until((ledger) => ledger.length > before && ledger.some(({ token }) => token === 1n));
  zombie.kill("SIGCONT");
  const ids = await feedIds(store);
  await receiver.until((ledger) => new Set(ledger.map(({ id }) => id)).size >= ids.length);
  const late = receiver.ledger.slice(before).filter(({ token }) => token === 1n);
  expect(late.length).toBeGreaterThan(0);
  expect(judge(ids, receiver.ledger).lost).toBe(0);
  // The checkpoint of the successor ends behind everything, whatever the zombie wrote.
  for (;;) {
    const view = await store.read.lease(tenant, { name: "sink ledger" });
    const page = await store.read.feed(readCheckpoint(view?.checkpoint)?.cursor ?? undefined, 1, tenant);
    if (page.records.length === 0 && page.more !== true) {
      expect(view!.token).toBeGreaterThan(1n);
      break;
    }
    await systemClock.sleep(20);
  }
}, 30_000);
