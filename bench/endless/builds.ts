import { seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { FindRequest, Store } from "../../src/store/contract/store.ts";
import { median, say } from "../work.ts";
import { type EndlessPart, type Figures, rounded } from "./part.ts";

export interface BuildSizes {
  /** Runs that are pinned to a build without a process, and due. */
  readonly dead: number;
  /** Claims that are timed, before and with them. */
  readonly claims: number;
}

/** One of them gets the runs of the dead build. Their claims take turns, because a machine has other work, too. */
const tenants = { free: "bench", beside: "beside" } as const;
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
        for (const tenant of Object.values(tenants)) {
          await store.intake.reportBuild(tenant, "live", ["quote"]);
          await store.intake.reportBuild(tenant, "dead", ["quote"]);
        }
        await claimMs(store, "warm", claims);
        await pinned(store, dead);
        const { free, beside } = await claimMs(store, "timed", claims);
        say(`${kind}: a claim takes ${free} ms, beside ${dead} runs of a dead build ${beside} ms`);
        figures[kind === "sqlite" ? "buildClaimRatioSqlite" : "buildClaimRatioPostgres"] = rounded(beside / free);
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
    const created = await store.intake.createRuns(tenants.beside, specs, { ...who, nonce: random.bits63() });
    const released = created.map((one) => {
      if (!one.ok || one.term === undefined) throw new Error("a run was not created");
      const data = { reason: "released", notesTaken: 0, nextReactor: "recovery" } as const;
      return [one.term.fence, { after: 1, records: [{ kind: "term.ended", data }] }] as const;
    });
    await store.fenced.appendAll(released);
  }
}

/** The median of finds that claim one new run each, of each tenant. */
async function claimMs(store: Store, name: string, count: number): Promise<Record<keyof typeof tenants, number>> {
  const specs = Array.from({ length: count }, (_, k) => ({ id: `${name}-${k}`, workflow: "quote", input: null }));
  for (const tenant of Object.values(tenants)) {
    for (let from = 0; from < count; from += together)
      await store.intake.createRuns(tenant, specs.slice(from, from + together));
  }
  const times = { free: [] as number[], beside: [] as number[] };
  const claim = async (of: keyof typeof tenants): Promise<void> => {
    const started = performance.now();
    const found = await store.claim.find(request(tenants[of]));
    times[of].push(performance.now() - started);
    if (found.length !== 1) throw new Error(`${found.length} runs were claimed, not one`);
  };
  for (let k = 0; k < count; k++) for (const whose of ["free", "beside"] as const) await claim(whose);
  return { free: rounded(median(times.free)), beside: rounded(median(times.beside)) };
}

const request = (tenant: string): FindRequest => ({
  ...{ claimant: who, nextReactor: "recovery", staleOf: ["recovery"], limit: 1, nonce: random.bits63(), tenant },
  ...{ workflows: ["quote"], build: { build: "live", pinned: ["quote"] } },
});
