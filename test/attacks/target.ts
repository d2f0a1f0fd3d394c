/**
 * The target of attacks: a real server in its own process on a real store, the tenants `acme` and `globex` with a token
 * for each role, and a third process that measures the impact of an attack on others.
 *
 *     describe.each(backends)("… on %s", (backend) => {
 *       const target = attackTarget(backend);                    // one server for the tests of the block
 *       it("…", async () => {
 *         const { call, token, store, measured } = target();
 *         const impact = await measured(async () => {
 *           const { status, json } = await call("POST", "/v1/runs", { token: token("acme", "starter"), body: {…} });
 *         });
 *         expect(impact.stall).toBeLessThan(10);                 // times the idle machine's slowest response
 *         expect(impact.growth).toBeLessThan(2);                 // times the idle server's memory
 *         expect(target().alive()).toBe(true);
 *       });
 *     });
 *
 * Bounds are ratios to a baseline that `measured` takes before the work, never absolute times. `packed` makes a gzip
 * body, `headers: { "content-encoding": "gzip" }` announces it, `raw` sends bytes that no client would send. A test of a
 * function or of the handlers needs none of this: test/server/stage.ts has a server without a socket.
 */
import { afterAll, beforeAll, inject } from "vitest";
import { type AttackTarget, type Backend, freshStore, openTarget, type TargetOptions } from "./open-target.ts";

export { backends, packed } from "./open-target.ts";

/** On a busy machine a server needs long to start. */
const startMs = 300_000;

/** One server for the tests of a describe block, on a new store of this kind. */
export function attackTarget(backend: Backend, options: Omit<TargetOptions, "store"> = {}): () => AttackTarget {
  let target: AttackTarget | undefined;
  let clear = async (): Promise<void> => {};
  beforeAll(async () => {
    const place = await freshStore(backend, () => inject("postgres18"));
    clear = place.clear;
    target = await openTarget({ ...options, store: place.url });
  }, startMs);
  afterAll(async () => {
    await target?.close();
    await clear();
  });
  return () => {
    if (target === undefined) throw new Error("the target is only available inside tests");
    return target;
  };
}
