import { describe, expect, it } from "vitest";
import { attackTarget, backends, packed } from "./target.ts";

const zipped = { "content-encoding": "gzip" };

/** Fences of journals that do not exist. */
function renewals(count: number, from = 1_000_000_000): { renewals: readonly unknown[] } {
  const fence = (k: number) => ({ journal: from + k, token: "1", nonce: "1" });
  return { renewals: Array.from({ length: count }, (_, k) => ({ fence: fence(k), progress: 0 })) };
}

/** 230 000 renewals: half a megabyte on the wire, and formerly a quarter of a million queries in the pool's queue. */
describe.each(backends)("a flood of renewals on %s", (backend) => {
  const target = attackTarget(backend);

  it("in one call is refused before any lookup", async () => {
    const { call, token, measured } = target();
    const body = packed(renewals(230_000));
    expect(body.byteLength).toBeLessThan(2 ** 20);
    const impact = await measured(() =>
      call("POST", "/v1/store/renew", { token: token("globex", "worker"), body, headers: zipped }),
    );
    expect(impact.result.status, impact.result.text.slice(0, 200)).toBe(413);
    expect(impact.stall, impact.summary).toBeLessThan(15);
  });

  it("in many calls at once stops neither the server nor another tenant's renewals", async () => {
    const { call, token, measured, store } = target();
    const claimant = { owner: "acme/1", label: "acme", reactor: "recovery", ttlMs: 60_000, nonce: 77n };
    const [created] = await store.intake.createRuns("acme", [{ id: "held", workflow: "w", input: 1 }], claimant);
    if (!created?.ok || created.term === undefined) throw new Error("the run was not created");
    const { journal, token: fencing, nonce } = created.term.fence;
    const held = { renewals: [{ fence: { journal, token: String(fencing), nonce: String(nonce) }, progress: 0 }] };
    const bodies = Array.from({ length: 40 }, (_, k) => packed(renewals(1_000, 1_000_000_000 + k * 1_000)));
    let over = false;
    const flood = async () => {
      const options = { token: token("globex", "worker"), headers: zipped };
      return Promise.all(bodies.map((body) => call("POST", "/v1/store/renew", { ...options, body })));
    };
    const own: unknown[] = [];
    const renew = async () => {
      const options = { token: token("acme", "worker"), body: held };
      while (!over) own.push((await call("POST", "/v1/store/renew", options)).json);
    };
    const impact = await measured(async () => {
      const renewing = renew();
      const responses = await flood();
      over = true;
      await renewing;
      return responses;
    });
    expect(impact.stall, impact.summary).toBeLessThan(15);
    expect(impact.growth, impact.summary).toBeLessThan(4);
    for (const response of own) expect(response).toMatchObject({ results: [{ ok: true }] });
    for (const { status, json } of impact.result) {
      if (status === 200) expect((json as { results: { ok: boolean }[] }).results.some(({ ok }) => ok)).toBe(false);
      else expect(json).toMatchObject({ status: 503, code: "TAPE_OVERLOADED" });
    }
  });
});
