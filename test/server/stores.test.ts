import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { contract, routes } from "../../src/protocol/contract.ts";
import type { Route } from "../../src/protocol/route.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";
import { requestOf } from "./samples.ts";
import { makeScene, type Scene, tokenOf } from "./scene.ts";
import { ask, bootstrap, firstLines, type Stage, stage } from "./stage.ts";

/** Only for the store's operator. */
const ofTheStore: readonly string[] = ["store.restored", "quotas.list", "quotas.set"];

const postgresUrl = ownPostgres(18);

/** What a store gives must be what the contract says, field by field: each database has its own idea of a number. */
const places = {
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), "tape-routes-"));
    return { url: `sqlite:${join(folder, "t.db")}`, clear: () => rmSync(folder, { recursive: true }) };
  },
  postgres: async () => ({ url: await freshDatabase(postgresUrl()), clear: () => {} }),
};

for (const [name, place] of Object.entries(places)) {
  describe(`every route on ${name}`, () => {
    let store: Store;
    let current: Stage;
    let shared: Scene;
    let clear = (): void => {};
    let url = "";
    beforeAll(async () => {
      ({ url, clear } = await place());
      store = await openStore(url);
      current = await stage({ store, credentials: "required", tenant: "home" });
      shared = await makeScene(store, "shared");
    });
    afterAll(async () => {
      await current.close();
      await store.close();
      clear();
    });

    it("responds as the contract says", async () => {
      let others = 0;
      const last = (route: string): number => (route === "store.restored" ? 1 : 0); // it ends everybody's terms
      for (const { name: route } of routes.toSorted((a, b) => last(a.name) - last(b.name))) {
        const { repeat, stream } = contract[route] as Route;
        const scene = repeat === "read" ? shared : await makeScene(store, `t${++others}`);
        const { method, url: requested, body } = requestOf(route, scene);
        const token = ofTheStore.includes(route) ? bootstrap : tokenOf(scene.tenant, "admin");
        if (stream === true) {
          const gone = new AbortController();
          const headers = { authorization: `Bearer ${token}` };
          const answer = await current.server.exchange({ method, url: requested, headers, signal: gone.signal });
          expect(answer.status, route).toBe(200);
          expect(await firstLines(answer, route === "store.wakeHints" ? 0 : 1), route).toBeDefined();
          gone.abort();
        } else {
          const { status, json } = await ask(current.server.exchange, method, requested, { body, token });
          expect(status, `${route}: ${JSON.stringify(json)}`).toBe(200);
        }
      }
      expect(others).toBeGreaterThan(20);
    }, 90_000); // a scene for each route that writes

    it("shares keys, tokens and revocations between two servers", async () => {
      const another = await openStore(url);
      const second = await stage({ store: another, credentials: "required", tenant: "home" });
      const start = { body: { workflow: "w", input: 1 }, key: "k-1", token: bootstrap };
      const first = await ask(current.server.exchange, "POST", "/v1/runs", start);
      expect((await ask(second.server.exchange, "POST", "/v1/runs", start)).json).toEqual(first.json);
      const made = await ask(current.server.exchange, "POST", "/v1/tokens", {
        ...{ body: { name: "ci", role: "reader", reason: "test" }, token: bootstrap },
      });
      const { secret, token } = made.json as { secret: string; token: { id: string } };
      expect((await ask(second.server.exchange, "GET", "/v1/runs/k-1", { token: secret })).status).toBe(200);
      await ask(second.server.exchange, "POST", `/v1/tokens/${token.id}/revoke`, {
        ...{ body: { reason: "test" }, token: bootstrap },
      });
      // This one has not seen the token yet: what it does not remember it asks the store.
      expect((await ask(current.server.exchange, "GET", "/v1/runs/k-1", { token: secret })).status).toBe(401);
      await second.close();
      await another.close();
    });
  });
}
