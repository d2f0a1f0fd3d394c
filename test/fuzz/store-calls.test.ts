import { describe, expect, inject, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { Chance } from "../../tools/fuzz/chance.ts";
import { fuzzStoreCalls } from "../../tools/fuzz/store-calls.ts";
import { freshStore } from "../attacks/open-target.ts";

describe("store calls with one argument of a wrong type", () => {
  it.each(["sqlite", "postgres"] as const)("%s carries them out or rejects them with a code", async (kind) => {
    const place = await freshStore(kind, () => inject("postgres18"));
    const store = await openStore(place.url);
    try {
      const { findings, rejected } = await fuzzStoreCalls(store, new Chance("calls"), kind === "postgres" ? 40 : 120);
      expect(findings).toEqual([]);
      expect(rejected).toBeGreaterThan(20);
    } finally {
      await store.close();
      await place.clear();
    }
  });
});
