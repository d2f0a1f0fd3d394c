import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { LeaseKeeper } from "../../src/lease/keeper.ts";
import { TapeError } from "../../src/model/errors.ts";
import { isBusy } from "../../src/store/sqlite/database.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { Child } from "./child-process.ts";

const tenant = "default";
const busyMs = 200;

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "accepted",
    (error: unknown) => (error instanceof TapeError ? error.code : error),
  );

it("others wait and get TAPE_STORE_BUSY while a stopped process holds the lock, and nothing is lost", async (test) => {
  const folder = await mkdtemp(join(tmpdir(), "tape-locked-"));
  test.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "tape.db");
  const store = await openSqlite({ file, busyMs });
  test.onTestFinished(() => store.close());
  // Frequent heartbeats and a long trust, so that the test depends on the lock and not on the speed of the machine.
  const timings = { ttlMs: 60_000, heartbeatMs: 50, trustMs: 50_000 };
  const keeper = new LeaseKeeper({ store, identity: { owner: "me", label: "me" }, timings });
  test.onTestFinished(() => keeper.close());
  const lease = await keeper.tryAcquire("sweeper");
  if (lease === undefined) throw new Error("not granted");
  const changes: string[] = [];
  lease.onChange(({ to }) => changes.push(to));

  const stopped = new Child("stopped", [file], test, "stopped-commit.ts");
  await stopped.receive();
  stopped.send({ do: "stop" });
  await untilLocked(file);

  const before = systemClock.mono();
  expect(await codeOf(store.intake.putValue(tenant, "mine", 1, "must_create"))).toBe("TAPE_STORE_BUSY");
  expect(systemClock.mono() - before).toBeGreaterThanOrEqual(busyMs - 1);
  expect(await codeOf(store.claim.renew([{ fence: lease.fence, progress: 0 }]))).toBe("TAPE_STORE_BUSY");
  // Readers never wait, and see only committed data.
  expect(await store.read.value(tenant, "stopped")).toBeUndefined();
  expect((await store.read.lease(tenant, { name: "sweeper" }))?.state).toBe("HELD");
  await until(() => lease.belief === "unknown");
  lease.assert(); // unknown, but still trusted
  // The event loop stays free: a write that waits for the file does not delay the heartbeats.
  let waiting = true;
  let turns = 0;
  const write = codeOf(store.intake.putValue(tenant, "mine", 1, "must_create")).finally(() => {
    waiting = false;
  });
  for (; waiting; turns++) await systemClock.sleep(1);
  expect(turns).toBeGreaterThan(5);
  expect(await write).toBe("TAPE_STORE_BUSY");

  stopped.wake();
  expect(await stopped.receive()).toEqual({ result: "accepted" });
  expect((await store.read.value(tenant, "stopped"))?.value).toBe(1);
  expect(await codeOf(store.intake.putValue(tenant, "mine", 1, "must_create"))).toBe("accepted");
  await until(() => lease.belief === "held");
  expect(changes.at(-1)).toBe("held");
  expect(changes).not.toContain("lost");
});

/** Waits until another process is inside a transaction. */
async function untilLocked(file: string): Promise<void> {
  const db = new DatabaseSync(file, { timeout: 0 });
  try {
    for (;;) {
      db.exec("begin immediate; rollback");
      await systemClock.sleep(5);
    }
  } catch (error) {
    if (!isBusy(error)) throw error;
  } finally {
    db.close();
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await systemClock.sleep(10);
}
