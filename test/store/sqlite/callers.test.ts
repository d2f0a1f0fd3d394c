import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { openStore } from "../../../src/host/open-store.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import { claimant, heldRun, spec, step, tenant } from "../../../testkit/conformance/frame.ts";
import { done, outcomeOf, stepOn } from "../caller-outcomes.ts";
import { codeOf } from "../postgres/scene.ts";
import { type Place, placeForFile } from "./files.ts";

/** Transactions of the caller on SQLite, beyond what the conformance suite asks of every store. */
let place: Place;
beforeEach(() => {
  place = placeForFile();
});
afterEach(() => place.close());

const held = (store: Store) => heldRun(store, {}, claimant("holder", { ttlMs: 60_000 }));
const take = (client: unknown): string => {
  (client as DatabaseSync).exec("insert into seats values ('12A')");
  return "12A";
};
const withSeats = (db: DatabaseSync): DatabaseSync => {
  db.exec("create table if not exists seats(seat text primary key)");
  return db;
};
const seatsIn = (db: DatabaseSync): number => db.prepare("select seat from seats").all().length;

describe("the connection", () => {
  it("must have the store's own file open, not a copy and not another one", async () => {
    const store = await place.open();
    const copy = join(place.folder, "copy.db");
    await store.intake.createRuns(tenant, [spec()]);
    place.raw().exec("pragma wal_checkpoint(truncate)");
    copyFileSync(place.file, copy);
    const memory = await openStore("memory:");
    onTestFinished(() => memory.close());
    for (const [file, of] of [
      [copy, store],
      [join(place.folder, "other.db"), store],
      [":memory:", store],
      [place.file, memory],
      [":memory:", memory],
    ] as const) {
      const db = withSeats(new DatabaseSync(file));
      onTestFinished(() => db.close());
      expect(await outcomeOf(of.within!.step(db, take).commit((await held(of)).fence, 1, done))).toBe(
        "body: TAPE_OTHER_DATABASE",
      );
      db.exec("begin immediate");
      expect(await codeOf(of.within!.createRun(db, tenant, spec()))).toBe("TAPE_OTHER_DATABASE");
      db.exec("rollback");
    }
  });

  it("may reach the file by another path", async () => {
    const store = await place.open();
    const db = new DatabaseSync(join(place.folder, "..", place.folder.split("/").at(-1)!, "tape.db"));
    onTestFinished(() => db.close());
    db.exec("begin immediate");
    expect(await codeOf(store.within!.createRun(db, tenant, spec()))).toBe("done");
    db.exec("commit");
  });

  it("must flush its commits, unless the store itself does not", async () => {
    const store = await place.open();
    const db = place.raw();
    db.exec("pragma synchronous = normal; begin immediate");
    expect(await codeOf(store.within!.createRun(db, tenant, spec()))).toBe("TAPE_STORE_NOT_DURABLE");
    db.exec("rollback");
    const relaxed = await place.open({ durability: "relaxed" });
    db.exec("begin immediate");
    expect(await codeOf(relaxed.within!.createRun(db, tenant, spec()))).toBe("done");
    db.exec("rollback");
  });

  it("of a closed store is refused", async () => {
    const store = await place.open();
    const db = place.raw();
    db.exec("begin immediate");
    await store.close();
    expect(await codeOf(store.within!.createRun(db, tenant, spec()))).toBe("TAPE_STORE_CLOSED");
    db.exec("rollback");
  });
});

it("a transaction that has only read is refused if another connection has written since", async () => {
  const store = await place.open();
  const db = withSeats(place.raw());
  db.exec("begin");
  expect(seatsIn(db)).toBe(0);
  await store.intake.createRuns(tenant, [spec()]);
  const run = spec();
  expect(await codeOf(store.within!.createRun(db, tenant, run))).toBe("TAPE_STORE_BUSY");
  db.exec("rollback");
  expect(await store.read.run(tenant, run.id)).toBeUndefined();
});

it("the store's own writes wait for the caller's commit, and continue behind it", async () => {
  const store = await place.open();
  const db = place.raw();
  const run = await held(store);
  db.exec("begin immediate");
  await store.within!.signal(db, tenant, run.id, { name: "go", value: 1 });
  const appending = store.fenced.append(run.fence, { after: 1, records: [step(0)] });
  const creating = store.intake.createRuns(tenant, [spec(), spec()]);
  expect(await store.read.journal(tenant, { run: run.id })).toHaveLength(1);
  db.exec("commit");
  // What the store remembered of the run's notes is outdated by a commit that was not its own.
  expect(await appending).toEqual({ head: 2, notes: 1 });
  expect((await creating).every(({ ok }) => ok)).toBe(true);
});

it("[INV-5] a signal that is refused after its note was counted leaves no note", async () => {
  const store = await place.open({ limits: { inboxNotes: 1 } });
  const run = await held(store);
  const db = withSeats(place.raw());
  db.exec("begin immediate");
  await store.within!.signal(db, tenant, run.id, { name: "go", value: 1 });
  const second = store.within!.signal(db, tenant, run.id, { name: "go", value: 2 });
  expect(await codeOf(second)).toBe("TAPE_TOO_LARGE");
  take(db);
  db.exec("commit");
  expect(seatsIn(db)).toBe(1);
  expect(await store.fenced.append(run.fence, { after: 1, records: [step(0)] })).toEqual({ head: 2, notes: 1 });
});

it("other processes notice a run of the caller's transaction", async () => {
  const store = await place.open();
  const noticed = new Promise<void>((resolve) => {
    const stop = store.onWake((wake) => {
      if (wake.of === "any") resolve();
    });
    onTestFinished(stop);
  });
  const other = await place.open();
  const db = place.raw();
  db.exec("begin immediate");
  await other.within!.createRun(db, tenant, spec());
  db.exec("commit");
  await noticed;
});

describe("a step", () => {
  it("waits for another writer, and gives up after the bound of the store", async () => {
    const store = await place.open({ busyMs: 50 });
    const run = await held(store);
    const [db, other] = [withSeats(place.raw()), place.raw()];
    other.exec("begin immediate");
    expect(await outcomeOf(stepOn(store.within!.step(db, take), run))).toBe("TAPE_STORE_BUSY");
    const waiting = outcomeOf(stepOn(store.within!.step(db, take), run));
    other.exec("rollback");
    expect(await waiting).toBe("done");
    expect(seatsIn(db)).toBe(1);
  });

  it("is refused on a connection with an open transaction of its own", async () => {
    const store = await place.open();
    const db = withSeats(place.raw());
    db.exec("begin");
    expect(await outcomeOf(stepOn(store.within!.step(db, take), await held(store)))).toBe("body: TAPE_NO_TRANSACTION");
    db.exec("rollback");
    expect(seatsIn(db)).toBe(0);
  });

  it("fails with the error of a constraint that is checked at the commit", async () => {
    const store = await place.open();
    const run = await held(store);
    const db = withSeats(place.raw());
    db.exec("create table pets(owner text references seats(seat) deferrable initially deferred)");
    const orphan = store.within!.step(db, (client) => (client as DatabaseSync).exec("insert into pets values ('x')"));
    expect(await outcomeOf(stepOn(orphan, run))).toBe("body: ERR_SQLITE_ERROR");
    expect(db.isTransaction).toBe(false);
    expect(await outcomeOf(stepOn(store.within!.step(db, take), run))).toBe("done");
  });

  it.each(["after", "before"] as const)(
    "[INV-7] whose COMMIT failed %s it was executed is read from the file, never guessed",
    async (when) => {
      const store = await place.open();
      const run = await held(store);
      const db = withSeats(new BrokenDatabase(place.file, when));
      onTestFinished(() => db.close());
      const landed = when === "after";
      expect(await outcomeOf(stepOn(store.within!.step(db, take), run))).toBe(
        landed ? "done" : "TAPE_STORE_UNREACHABLE",
      );
      expect(seatsIn(db)).toBe(landed ? 1 : 0);
      expect(await store.read.journal(tenant, { run: run.id })).toHaveLength(landed ? 2 : 1);
      if (!landed) expect(await outcomeOf(stepOn(store.within!.step(db, take), run))).toBe("done");
      expect(seatsIn(db)).toBe(1);
    },
  );
});

/** A database whose first COMMIT fails: after it was executed, or instead. */
class BrokenDatabase extends DatabaseSync {
  readonly #when: "after" | "before";
  #broken = false;

  constructor(file: string, when: "after" | "before") {
    super(file, { timeout: 0 });
    this.#when = when;
  }

  override prepare(sql: string): StatementSync {
    const statement = super.prepare(sql);
    if (sql !== "commit") return statement;
    const run = (): unknown => {
      if (this.#broken) return statement.run();
      this.#broken = true;
      if (this.#when === "after") statement.run();
      throw new Error("disk I/O error");
    };
    return { run } as unknown as StatementSync;
  }
}
