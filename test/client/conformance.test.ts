import { afterEach, beforeEach, describe, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { storeConformance } from "../../testkit/conformance/index.ts";
import { openBlank } from "../blank-database.ts";
import { remoteOn } from "./stage.ts";
import { byTenant } from "./tenants.ts";

const api = { describe, it, beforeEach, afterEach };

storeConformance("a store behind a server", api, async () => {
  const clock = new ManualClock();
  const behind = await openStore("memory:", { clock, open: openBlank });
  const opened: Promise<Store>[] = [];
  const client = async (): Promise<Store> => {
    const stores = new Map<string, Promise<Store>>();
    const storeOf = (tenant: string): Promise<Store> => {
      const store = stores.get(tenant) ?? remoteOn(behind, tenant);
      if (!stores.has(tenant)) opened.push(store);
      stores.set(tenant, store);
      return store;
    };
    return byTenant(await storeOf("acme"), behind, storeOf);
  };
  return {
    store: await client(),
    another: client,
    elapse: (ms) => clock.elapse(ms),
    close: async () => {
      await Promise.all(opened.map(async (store) => (await store).close()));
      await behind.close();
    },
  };
});
