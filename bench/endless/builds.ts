import { seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { FindRequest, Store } from "../../src/store/contract/store.ts";
import { say } from "../work.ts";
import { type EndlessPart, type Figures, rounded } from "./part.ts";

export interface BuildSizes {
  /** Runs that are pinned to a build without a process, and due. */
  readonly dead: number;
  /** Claims that are timed, before and with them. */
  readonly claims: number;
}

const tenant = "bench";
const who = { owner: "bench", label: "bench", reactor: "recovery", ttlMs: 600_000 };
const random = seededRandom("builds");
/** Within the limit of a batch. */
const together = 500;

/** What a claim costs beside runs that no process may take: the bar is 1.2 times a claim without them. */
export const builds: EndlessPart<BuildSizes> = {
  usual: { dead: 100_000, claims: 400 },
  small: { dead: 2_000, claims: 100 },
  figures: ["buildClaimRatioSqlite", "buildClaimRatioPostgres"],
  async measure(site, { dead, claims }) {
    const figures: Record<string, number> = {};
    for (const kind of site.stores) {
      const store = await openStore(await site.store(kind));
      try {
        await store.intake.reportBuild(tenant, "live", ["quote"]);
        await store.intake.reportBuild(tenant, "dead", ["quote"]);
        await claimMs(store, "warm", claims);
        const without = await claimMs(store, "without", claims);
        await pinned(store, dead);
        const beside = await claimMs(store, "beside", claims);
        say(`${kind}: a claim takes ${without} ms, beside ${dead} runs of a dead build ${beside} ms`);
        figures[kind === "sqlite" ? "buildClaimRatioSqlite" : "buildClaimRatioPostgres"] = rounded(beside / without);
      } finally {
        await store.close();
      }
    }
    return figures satisfies Figures;
  },
};

/** Creates runs of the dead build that wait for its processes. */
async function pinned(store: Store, count: number): Promise<void> {
  for (let from = 0; from < count; from += together) {
    const ids = Array.from({ length: Math.min(together, count - from) }, (_, k) => `dead-${from + k}`);
    const specs = ids.map((id) => ({ id, workflow: "quote", input: null, build: "dead" }));
    const created = await store.intake.createRuns(tenant, specs, { ...who, nonce: random.bits63() });
    const released = created.map((one) => {
      if (!one.ok || one.term === undefined) throw new Error("a run was not created");
      const data = { reason: "released", notesTaken: 0, nextReactor: "recovery" } as const;
      return [one.term.fence, { after: 1, records: [{ kind: "term.ended", data }] }] as const;
    });
    await store.fenced.appendAll(released);
  }
}

/** The median of finds that claim one new run each. */
async function claimMs(store: Store, name: string, count: number): Promise<number> {
  const specs = Array.from({ length: count }, (_, k) => ({ id: `${name}-${k}`, workflow: "quote", input: null }));
  for (let from = 0; from < count; from += together)
    await store.intake.createRuns(tenant, specs.slice(from, from + together));
  const times: number[] = [];
  for (let k = 0; k < count; k++) {
    const started = performance.now();
    const found = await store.claim.find(request());
    times.push(performance.now() - started);
    if (found.length !== 1) throw new Error(`${found.length} runs were claimed, not one`);
  }
  return rounded(times.sort((a, b) => a - b)[Math.floor(count / 2)]!);
}

const request = (): FindRequest => ({
  ...{ claimant: who, nextReactor: "recovery", staleOf: ["recovery"], limit: 1, nonce: random.bits63(), tenant },
  ...{ workflows: ["quote"], build: { build: "live", pinned: ["quote"] } },
});
