import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { fileObjects } from "../../src/guard/file-objects.ts";
import { type ConditionalObjects, guardObject } from "../../src/guard/objects.ts";

const holder = (token: bigint, name = "day-end") => ({ name, token });
const key = "reports/monday.json";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "tape-objects-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

/** Holds the next conditional write back until `go` is called. */
function paused(objects: ConditionalObjects<string>): {
  objects: ConditionalObjects<string>;
  held: Promise<void>;
  go: () => void;
} {
  let go = (): void => {};
  const released = new Promise<void>((resolve) => {
    go = resolve;
  });
  let reached = (): void => {};
  const held = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const put: ConditionalObjects<string>["put"] = async (...args) => {
    reached();
    await released;
    return objects.put(...args);
  };
  return { objects: { ...objects, put }, held, go };
}

describe("guardObject on files", () => {
  it("refuses the previous holder from the new holder's first write on", async () => {
    const objects = fileObjects(folder());
    await guardObject(objects, holder(5n), key, "old");
    await guardObject(objects, holder(6n), key, "new");
    await expect(guardObject(objects, holder(5n), key, "late")).rejects.toMatchObject({ code: "TAPE_FENCED" });
    expect((await objects.get(key))?.body).toBe("new");
    await guardObject(objects, holder(6n), key, (body) => `${body} and newer`);
    expect((await objects.get(key))?.body).toBe("new and newer");
  });

  it("refuses a holder that was paused between its check and its write", async () => {
    const files = fileObjects(folder());
    await guardObject(files, holder(5n), key, "old");
    const stale = paused(files);
    const late = guardObject(stale.objects, holder(5n), key, "late");
    await stale.held;
    await guardObject(files, holder(6n), key, "new");
    stale.go();
    await expect(late).rejects.toMatchObject({ code: "TAPE_FENCED" });
    expect((await files.get(key))?.body).toBe("new");
  });

  it("refuses a paused holder also after many newer versions, whose files are gone", async () => {
    const path = folder();
    const files = fileObjects(path);
    await guardObject(files, holder(5n), key, "old");
    const stale = paused(files);
    const late = guardObject(stale.objects, holder(5n), key, "late");
    await stale.held;
    for (let k = 0; k < 5; k++) await guardObject(files, holder(6n), key, `new ${k}`);
    stale.go();
    await expect(late).rejects.toMatchObject({ code: "TAPE_FENCED" });
    expect((await files.get(key))?.body).toBe("new 4");
    const [only] = readdirSync(path);
    expect(readdirSync(join(path, only!))).toEqual(["6"]);
  });

  it("loses no write of one holder that writes concurrently", async () => {
    const objects = fileObjects(folder());
    const add = () => guardObject(objects, holder(7n), "counter", (body) => String(Number(body ?? 0) + 1));
    await Promise.all(Array.from({ length: 20 }, add));
    expect(await objects.get("counter")).toMatchObject({ body: "20", version: "20", fence: "7@default/day-end" });
  });

  it("keeps an object to the lease that first guarded it", async () => {
    const objects = fileObjects(folder());
    await guardObject(objects, holder(5n), key, "a");
    await expect(guardObject(objects, holder(9n, "other"), key, "b")).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
  });

  it("asks a lease first whether it still trusts itself", async () => {
    const objects = fileObjects(folder());
    const lost = {
      ...holder(5n),
      assert: () => {
        throw new Error("lost");
      },
    };
    await expect(guardObject(objects, lost, key, "a")).rejects.toThrow("lost");
    expect(await objects.get(key)).toBeUndefined();
  });

  it.each(["", "k".repeat(81)])("refuses the key %j", async (bad) => {
    await expect(guardObject(fileObjects(folder()), holder(1n), bad, "a")).rejects.toMatchObject({
      code: "TAPE_BAD_INPUT",
    });
  });

  it("keeps keys such as .. and a/b apart from paths", async () => {
    const path = folder();
    const objects = fileObjects(path);
    for (const odd of ["..", "a/b", "%", "*", "o-x", "ü"]) {
      await guardObject(objects, holder(1n), odd, odd);
      expect((await objects.get(odd))?.body).toBe(odd);
    }
    expect(readdirSync(path)).toHaveLength(6);
  });
});

it("gives up after a hundred writes of others", async () => {
  const busy: ConditionalObjects<string> = { get: async () => undefined, put: async () => false };
  await expect(guardObject(busy, holder(1n), key, "a")).rejects.toMatchObject({ code: "TAPE_STORE_BUSY" });
});
