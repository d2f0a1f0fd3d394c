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
import { Actor } from "./actor.ts";

const tenant = "default";
const busyMs = 200;

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "accepted",
    (error: unknown) => (error instanceof TapeError ? error.code : error),
  );

it("a process stopped with the file locked: others wait, are told that it is busy, and nothing is lost", async (test) => {
  const folder = await mkdtemp(join(tmpdir(), "tape-locked-"));
  test.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "tape.db");
  const store = await openSqlite({ file, busyMs });
  test.onTestFinished(() => store.close());
  // Beats often and trusts long: what it believes while the file is locked is the point, not how fast this machine is.
  const timings = { ttlMs: 60_000, heartbeatMs: 50, trustMs: 50_000 };
  const keeper = new LeaseKeeper({ store, identity: { owner: "me", label: "me" }, timings });
  test.onTestFinished(() => keeper.close());
  const lease = await keeper.tryAcquire("sweeper");
  if (lease === undefined) throw new Error("not granted");
  const changes: string[] = [];
  lease.onChange(({ to }) => changes.push(to));

  const stopped = new Actor("stopped", [file], test, "stopped-commit.ts");
  await stopped.hear();
  stopped.say({ do: "stop" });
  await untilLocked(file);

  const before = systemClock.mono();
  expect(await codeOf(store.intake.putValue(tenant, "mine", 1, "must_create"))).toBe("TAPE_STORE_BUSY");
  expect(systemClock.mono() - before).toBeGreaterThanOrEqual(busyMs - 1);
  expect(await codeOf(store.claim.renew([{ fence: lease.fence, progress: 0 }]))).toBe("TAPE_STORE_BUSY");
  // Readers wait for nobody, and see nothing of what is not committed.
  expect(await store.read.value(tenant, "stopped")).toBeUndefined();
  expect((await store.read.lease(tenant, { name: "sweeper" }))?.state).toBe("HELD");
  await until(() => lease.belief === "unknown");
  lease.assert(); // in doubt, and within its trust
  // The event loop is free all the while: a write that waits for the file does not stall the heartbeats.
  let waiting = true;
  let turns = 0;
  const write = codeOf(store.intake.putValue(tenant, "mine", 1, "must_create")).finally(() => {
    waiting = false;
  });
  for (; waiting; turns++) await systemClock.sleep(1);
  expect(turns).toBeGreaterThan(5);
  expect(await write).toBe("TAPE_STORE_BUSY");

  stopped.wake();
  expect(await stopped.hear()).toEqual({ say: "accepted" });
  expect((await store.read.value(tenant, "stopped"))?.value).toBe(1);
  expect(await codeOf(store.intake.putValue(tenant, "mine", 1, "must_create"))).toBe("accepted");
  await until(() => lease.belief === "held");
  expect(changes.at(-1)).toBe("held");
  expect(changes).not.toContain("lost");
});

/** Somebody is inside a transaction: another cannot begin. */
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

async function until(what: () => boolean): Promise<void> {
  while (!what()) await systemClock.sleep(10);
}
