import { expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { acquired, claimant, heldRun, request } from "../../testkit/conformance/frame.ts";
import { ask, stage } from "./stage.ts";

it("health, overview and lists show a singleton behind more held runs than a page has rows", async () => {
  const store = await openStore("memory:", { limits: { pageRows: 3 } });
  onTestFinished(() => store.close());
  const who = claimant("replica/1", { ttlMs: 60_000 });
  for (const name of ["a", "b", "c", "leader"]) {
    await acquired(store, request({ name }, { claimant: { ...who, ttlMs: name === "leader" ? 1 : 60_000 } }), "acme");
  }
  for (let k = 0; k < 5; k++) await heldRun(store, {}, who);
  await expect.poll(async () => (await store.read.lease("acme", { name: "leader" }))?.state).toBe("EXPIRED");
  const { server } = await stage({ store, tenant: "acme" });
  const get = async (path: string) => (await ask(server.exchange, "GET", path)).json as Record<string, never>;
  const { singletons } = (await get("/healthz")) as { singletons?: { name: string; holder: string }[] };
  expect(singletons?.map(({ name }) => name)).toEqual(["a", "b", "c", "leader"]);
  const { leases } = (await get("/v1/overview")) as { leases?: { held: number; expired: number } };
  expect(leases).toMatchObject({ held: 6, expired: 1 }); // three of the five runs, and every name
  const list = (await get("/v1/leases?kind=name&held=true&above=c")) as { leases?: { name: string }[]; more?: boolean };
  expect(list.leases?.map(({ name }) => name)).toEqual(["leader"]);
});
