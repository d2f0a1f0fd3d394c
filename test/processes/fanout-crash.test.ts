import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, type TestContext } from "vitest";
import { feedIds, killFanouts, startFanout, writeLoad } from "../../bench/events/kill.ts";
import { judge, noAnswer, Receiver } from "../../bench/events/receiver.ts";
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

/** A store, a receiver and a load. The receiver's first request stays in flight until it is released. */
async function setScene(test: TestContext, rate: number) {
  const url = await urlOn(test);
  const [store, receiver] = [await openStore(url), new Receiver()];
  const address = await receiver.listen();
  const stop = new AbortController();
  test.onTestFinished(async () => {
    stop.abort();
    receiver.close();
    await store.close();
  });
  const [held, inFlight] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()];
  let first = true;
  receiver.respond = () => {
    if (!first) return 204;
    first = false;
    inFlight.resolve();
    return held.promise;
  };
  const fanout = async (window?: number) => {
    const child = await startFanout(url, address, ttlMs, window);
    test.onTestFinished(() => void child.kill("SIGKILL"));
    return child;
  };
  const load = writeLoad(store, rate, stop.signal);
  const endLoad = async (): Promise<string[]> => {
    stop.abort();
    await load;
    return feedIds(store);
  };
  return { store, receiver, fanout, endLoad, release: held.resolve, inFlight: inFlight.promise };
}

it("kill -9 repeats at most a window, also if the response to one lane never came", async (test) => {
  const window = 60;
  const { receiver, fanout, endLoad, release, inFlight } = await setScene(test, 300);
  const dying = await fanout(window);
  await inFlight; // the checkpoint cannot pass these events, and other lanes continue
  const isOver = receiver.until((ledger) => ledger.length > window).then(() => true);
  expect(await Promise.race([isOver, systemClock.sleep(1_500).then(() => false)])).toBe(false);
  dying.kill("SIGKILL");
  release(noAnswer);
  await fanout(window);
  await receiver.until((ledger) => ledger.some(({ token }) => token > 1n));
  const ids = await endLoad();
  await receiver.until(() => ids.every((id) => receiver.received.has(id)));
  const { lost, outOfOrder, repeats } = judge(ids, receiver.ledger);
  expect({ lost, outOfOrder }).toEqual({ lost: 0, outOfOrder: 0 });
  expect(repeats).toBeGreaterThan(0);
  expect(repeats).toBeLessThanOrEqual(window);
}, 30_000);

it("a zombie's batch carries the lower token, and its checkpoint is refused", async (test) => {
  const { store, receiver, fanout, endLoad, release, inFlight } = await setScene(test, 150);
  const zombie = await fanout();
  await inFlight;
  zombie.kill("SIGSTOP");
  while ((await store.read.lease(tenant, { name: "sink ledger" }))?.state !== "EXPIRED") await systemClock.sleep(20);
  await fanout();
  await receiver.until((ledger) => ledger.some(({ token }) => token > 1n));
  const ids = await endLoad();
  const before = receiver.ledger.length;
  release(204); // the zombie's batch arrives behind the successor's
  await receiver.until((ledger) => ledger.length > before && ledger.some(({ token }) => token === 1n));
  zombie.kill("SIGCONT");
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
