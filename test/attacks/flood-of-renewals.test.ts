import { describe, expect, it } from "vitest";
import { backends, groundOf, packed } from "./ground.ts";

const zipped = { "content-encoding": "gzip" };

/** Fences of journals that do not exist: nothing of it is the caller's. */
function renewals(count: number, from = 1_000_000_000): { renewals: readonly unknown[] } {
  const fence = (k: number) => ({ journal: from + k, token: "1", nonce: "1" });
  return { renewals: Array.from({ length: count }, (_, k) => ({ fence: fence(k), progress: 0 })) };
}

/** 230 000 renewals: half a megabyte on the wire, and once a quarter of a million queries in the pool's queue. */
describe.each(backends)("a flood of renewals on %s", (backend) => {
  const deps = groundOf(backend);

  it("in one call is refused before anything is looked up", async () => {
    const { call, token, measured } = deps();
    const body = packed(renewals(230_000));
    expect(body.byteLength).toBeLessThan(2 ** 20);
    const effect = await measured(() =>
      call("POST", "/v1/store/renew", { token: token("globex", "worker"), body, headers: zipped }),
    );
    expect(effect.result.status, effect.result.text.slice(0, 200)).toBe(413);
    expect(effect.stall, effect.said).toBeLessThan(15);
  });

  it("in many calls at once stops neither the server nor another tenant's renewals", async () => {
    const { call, token, measured, store } = deps();
    const claimant = { owner: "acme/1", label: "acme", reactor: "recovery", ttlMs: 60_000, nonce: 77n };
    const [created] = await store.intake.createRuns("acme", [{ id: "held", workflow: "w", input: 1 }], claimant);
    if (!created?.ok || created.term === undefined) throw new Error("the run was not created");
    const { journal, token: fencing, nonce } = created.term.fence;
    const held = { renewals: [{ fence: { journal, token: String(fencing), nonce: String(nonce) }, progress: 0 }] };
    const bodies = Array.from({ length: 40 }, (_, k) => packed(renewals(1_000, 1_000_000_000 + k * 1_000)));
    let over = false;
    const flood = async () => {
      const said = { token: token("globex", "worker"), headers: zipped };
      return Promise.all(bodies.map((body) => call("POST", "/v1/store/renew", { ...said, body })));
    };
    const own: unknown[] = [];
    const renew = async () => {
      const said = { token: token("acme", "worker"), body: held };
      while (!over) own.push((await call("POST", "/v1/store/renew", said)).json);
    };
    const effect = await measured(async () => {
      const renewing = renew();
      const answers = await flood();
      over = true;
      await renewing;
      return answers;
    });
    expect(effect.stall, effect.said).toBeLessThan(15);
    expect(effect.growth, effect.said).toBeLessThan(4);
    for (const answer of own) expect(answer).toMatchObject({ results: [{ ok: true }] });
    for (const { status, json } of effect.result) {
      if (status === 200) expect((json as { results: { ok: boolean }[] }).results.some(({ ok }) => ok)).toBe(false);
      else expect(json).toMatchObject({ status: 503, code: "TAPE_OVERLOADED" });
    }
  });
});
