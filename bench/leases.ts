import { systemRandom } from "../src/base/random.ts";
import { openStore } from "../src/host/open-store.ts";
import { identify } from "../src/lease/identity.ts";
import { LeaseKeeper } from "../src/lease/keeper.ts";
import type { Term } from "../src/model/lease.ts";
import type { Store } from "../src/store/contract/store.ts";
import { median, percentile, runPool } from "./work.ts";

const round1 = (value: number): number => Math.round(value * 10) / 10;
const claimant = { owner: "bench", label: "bench", reactor: "agent", ttlMs: 60_000 };

/** Acquire and release of one lease, one after the other; a thousand leases renewed in one call. */
export async function leaseFigures(store: Store): Promise<Record<string, number>> {
  const rounds = 200;
  const started = performance.now();
  for (let k = 0; k < rounds; k++) {
    const answer = await store.claim.acquire("bench", {
      target: { name: "solo" },
      claimant,
      nonce: systemRandom.bits63(),
      expect: "free",
    });
    if (!answer.ok) throw answer.error;
    await release(store, answer.term);
  }
  const cycleMs = (performance.now() - started) / rounds;
  const terms = await runPool(store, 1_000);
  const times: number[] = [];
  for (let k = 0; k < 21; k++) {
    const sent = performance.now();
    const verdicts = await store.claim.renew(terms.map(({ fence }) => ({ fence, progress: k })));
    if (!verdicts.every((verdict) => verdict.ok)) throw new Error("a renewal was refused");
    times.push(performance.now() - sent);
  }
  return { acquireReleaseMs: round1(cycleMs), renew1000Ms: round1(median(times.slice(1))) };
}

async function release(store: Store, term: Term): Promise<void> {
  const records = [{ kind: "term.ended", data: { reason: "released", notesTaken: 0 } } as const];
  await store.fenced.append(term.fence, { after: term.head, records });
}

/** Release by one handle → acquired by a standby on another, which polls only once a minute. */
export async function handover(url: string): Promise<Record<string, number>> {
  const stores = await Promise.all([openStore(url), openStore(url)]);
  const keepers = stores.map(
    (store) => new LeaseKeeper({ store, identity: identify({ HOSTNAME: "bench" }, systemRandom) }),
  );
  const times: number[] = [];
  let holder = await keepers[0]!.acquire("handover");
  for (let k = 0; k < 60; k++) {
    const next = keepers[(k + 1) % 2]!.acquire("handover", { pollMs: 60_000 });
    await new Promise((resolve) => setTimeout(resolve, 30)); // until it stands by
    const started = performance.now();
    await holder!.release();
    holder = await next;
    times.push(performance.now() - started);
  }
  for (const keeper of keepers) keeper.close();
  await Promise.all(stores.map((store) => store.close()));
  return { handoverP50Ms: round1(median(times)), handoverP99Ms: round1(percentile(times, 0.99)) };
}
