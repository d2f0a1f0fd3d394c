import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../../../src/host/open-store.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { codeOf } from "../postgres/scene.ts";
import { type Place, placeForFile } from "./files.ts";

let place: Place;
beforeEach(() => {
  place = placeForFile();
});
afterEach(() => place.close());

const at = (name: string): string => join(place.folder, name);
const made = async (file: string): Promise<void> => (await openSqlite({ file })).close();

describe("a copy of a SQLite file", () => {
  it.each(["while closed", "while the store is open", "with its folder"])(
    "next to the original is rejected: made %s",
    async (how) => {
      mkdirSync(at("here"));
      const original = join(at("here"), "tape.db");
      await made(original);
      let open: Store | undefined;
      if (how === "while the store is open") open = await openSqlite({ file: original });
      if (how === "with its folder") cpSync(at("here"), at("there"), { recursive: true });
      else {
        mkdirSync(at("there"));
        for (const end of ["", "-wal"])
          if (existsSync(original + end)) copyFileSync(original + end, join(at("there"), `tape.db${end}`));
      }
      const copy = join(at("there"), "tape.db");
      const refusal = await openSqlite({ file: copy }).catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: "TAPE_STORE_COPIED", details: { original } });
      await open?.close();
      // The original is untouched, and an operator can declare the copy independent; then both can be opened
      // repeatedly.
      await made(original);
      await (await openSqlite({ file: copy, restored: true })).close();
      await made(copy);
      await made(original);
    },
  );

  it("made by VACUUM INTO is rejected, too", async () => {
    await made(place.file);
    const db = place.raw();
    db.exec(`vacuum into '${at("backup.db")}'`);
    db.close();
    expect(await codeOf(openSqlite({ file: at("backup.db") }))).toBe("TAPE_STORE_COPIED");
  });
});

describe("a SQLite file that is no copy next to its original is opened", () => {
  it.each<[string, () => string]>([
    [
      "renamed",
      () => {
        renameSync(place.file, at("other.db"));
        return at("other.db");
      },
    ],
    [
      "moved to another file system: copied, and the original removed",
      () => {
        copyFileSync(place.file, at("other.db"));
        rmSync(place.file);
        return at("other.db");
      },
    ],
    [
      "put back from a backup in the same place",
      () => {
        copyFileSync(place.file, at("backup.db"));
        rmSync(place.file);
        renameSync(at("backup.db"), place.file);
        return place.file;
      },
    ],
    [
      "vacuumed",
      () => {
        const db = new DatabaseSync(place.file);
        db.exec("vacuum");
        db.close();
        return place.file;
      },
    ],
    [
      "where another store took the original's place",
      () => {
        copyFileSync(place.file, at("other.db"));
        const db = new DatabaseSync(place.file);
        db.exec("update meta set store_id = 'another'");
        db.close();
        return at("other.db");
      },
    ],
  ])("%s", async (_, move) => {
    await made(place.file);
    const file = move();
    await made(file);
    await made(file);
  });
});

describe("the path of a SQLite file", () => {
  it("names a missing folder, with a code", async () => {
    const refusal = await openSqlite({ file: at("missing/tape.db") }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      code: "TAPE_BAD_STORE_URL",
      message: expect.stringContaining(`the folder ${at("missing")} does not exist`),
    });
  });

  it("names a folder in place of the file likewise", async () => {
    expect(await codeOf(openSqlite({ file: place.folder }))).toBe("TAPE_STORE_UNREACHABLE");
  });

  it("sqlite://tape.db is reported as a mistake, not opened in the root folder", async () => {
    const refusal = await openStore("sqlite://tape-of-nobody.db").catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      code: "TAPE_BAD_STORE_URL",
      message: expect.stringMatching(/sqlite:\.\/tape-of-nobody\.db.*sqlite:\/\/\/tape-of-nobody\.db/),
    });
    expect(existsSync("/tape-of-nobody.db")).toBe(false);
    const store = await openStore(`sqlite://${place.file}`); // three slashes
    await store.close();
    expect(existsSync(place.file)).toBe(true);
  });

  it("warns about a file that others can read and a folder in which they can replace it", async () => {
    const logged: unknown[] = [];
    const log = (level: string, event: string): void => void logged.push([level, event]);
    await (await openSqlite({ file: place.file, log })).close();
    expect(logged).toEqual([]);
    chmodSync(place.file, 0o644);
    chmodSync(place.folder, 0o777);
    await (await openSqlite({ file: place.file, log })).close();
    expect(logged).toEqual([
      ["warn", "store.readable_by_others"],
      ["warn", "store.folder_open"],
    ]);
  });
});
