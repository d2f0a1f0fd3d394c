/**
 * The ground for attacks: a real server in a process of its own on a real store, tenants `acme` and `globex` with a token
 * of each role, and a third process that measures what an attack does to everybody else.
 *
 *     describe.each(backends)("… on %s", (backend) => {
 *       const ground = groundOf(backend);                        // one server for the file's tests
 *       it("…", async () => {
 *         const { call, token, store, measured } = ground();
 *         const effect = await measured(async () => {
 *           const { status, json } = await call("POST", "/v1/runs", { token: token("acme", "starter"), body: {…} });
 *         });
 *         expect(effect.stall).toBeLessThan(10);                 // times the quiet machine's worst answer
 *         expect(effect.growth).toBeLessThan(2);                 // times the quiet server's memory
 *         expect(ground().alive()).toBe(true);
 *       });
 *     });
 *
 * Bounds are ratios to a quiet measurement that `measured` makes before the work, never times. `packed` makes a gzip body,
 * `headers: { "content-encoding": "gzip" }` announces it, `raw` sends bytes that no client would. A test of one function
 * or of the handlers alone needs none of this: test/server/stage.ts has a server without a socket.
 */
import { afterAll, beforeAll, inject } from "vitest";
import { type Backend, freshStore, type Ground, type GroundOptions, openGround } from "./open-ground.ts";

export { backends, packed } from "./open-ground.ts";

/** One server for the tests of a describe block, on a fresh store of that kind. */
export function groundOf(backend: Backend, options: Omit<GroundOptions, "store"> = {}): () => Ground {
  let deps: Ground | undefined;
  let clear = async (): Promise<void> => {};
  beforeAll(async () => {
    const place = await freshStore(backend, () => inject("postgres18"));
    clear = place.clear;
    deps = await openGround({ ...options, store: place.url });
  });
  afterAll(async () => {
    await deps?.close();
    await clear();
  });
  return () => {
    if (deps === undefined) throw new Error("the ground is there from the first test on");
    return deps;
  };
}
