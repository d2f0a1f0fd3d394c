import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/sqlite/database.ts";
import { tenant } from "../../../testkit/conformance/frame.ts";
import { codeOf } from "../postgres/scene.ts";
import { type Place, placeForFile } from "./files.ts";

describe("a SQLite file", () => {
  let place: Place;
  beforeEach(() => {
    place = placeForFile();
  });
  afterEach(() => place.close());

  /** Opens the store with access to its own connections. */
  async function watched(options: Parameters<Place["open"]>[0] = {}) {
    const connections: DatabaseSync[] = [];
    const open = (file: string) => {
      const db = openDatabase(file);
      connections.push(db);
      return db;
    };
    const store = await place.open({ ...options, open });
    const pragma = (name: string) => Object.values(connections.at(-1)!.prepare(`pragma ${name}`).get() ?? {})[0];
    return { store, pragma };
  }

  it("and its log are private to their owner", async () => {
    const store = await place.open();
    await store.intake.putValue(tenant, "k", 1, "must_create");
    for (const part of ["", "-wal", "-shm"]) expect(statSync(place.file + part).mode & 0o777, part).toBe(0o600);
  });

  it("is flushed to disk before a commit is acknowledged", async () => {
    const { store, pragma } = await watched();
    expect([pragma("synchronous"), pragma("journal_mode"), pragma("busy_timeout")]).toEqual([2, "wal", 0]);
    expect(await store.read.settings()).toMatchObject({ durable: true, facts: { synchronous: "full" } });
  });

  it("is flushed lazily only on request, with a warning", async () => {
    const logged: unknown[] = [];
    const { store, pragma } = await watched({
      durability: "relaxed",
      log: (level, event) => logged.push([level, event]),
    });
    expect(pragma("synchronous")).toBe(1);
    expect(logged).toEqual([["warn", "store.not_durable"]]);
    expect(await store.read.settings()).toMatchObject({ durable: false, facts: { synchronous: "normal" } });
  });

  it("locked for one process rejects every other until it is closed", async () => {
    const single = await place.open({ processes: "single" });
    expect(single.exclusive).toBe(true);
    await single.intake.putValue(tenant, "k", 1, "must_create");
    for (const processes of ["many", "single"] as const) {
      expect(await codeOf(place.open({ processes, busyMs: 30 }))).toBe("TAPE_STORE_BUSY");
    }
    expect(() => place.raw().prepare("select * from vals").all()).toThrow(/locked/);
    await single.intake.putValue(tenant, "k", 2, { version: 1 });
    await single.close();
    const next = await place.open();
    expect(next.exclusive).toBe(false);
    expect(await next.read.value(tenant, "k")).toMatchObject({ version: 2, value: 2 });
  });

  it("that other processes have open cannot be locked for one", async () => {
    const many = await place.open();
    await many.intake.putValue(tenant, "k", 1, "must_create");
    expect(await codeOf(place.open({ processes: "single", busyMs: 30 }))).toBe("TAPE_STORE_BUSY");
    await many.intake.putValue(tenant, "k", 2, { version: 1 });
  });

  it("is opened as soon as it is free, with the event loop free meanwhile", async () => {
    const single = await place.open({ processes: "single" });
    const opening = place.open({ busyMs: 5_000 });
    // If the event loop were blocked, there would be no tick before the opening fails.
    for (let turns = 0; turns < 4; turns++) await new Promise((resolve) => setTimeout(resolve, 1));
    await single.close();
    await opening;
  });
});
