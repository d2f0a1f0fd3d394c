import { sinkLease } from "../../src/model/dead-letter.ts";
import type { Term } from "../../src/model/lease.ts";
import { checkpointText, type SinkCheckpoint } from "../../src/model/sink-checkpoint.ts";
import type { Store } from "../../src/store/contract/store.ts";
import type { PastClock } from "./past-clock.ts";
import type { Scene } from "./scene.ts";

const tenant = "default";
const hour = 3_600_000;

/** Moves the checkpoint of a sink to the end of the feed. */
export async function passAll(store: Store, { fence }: Term, more: Partial<SinkCheckpoint> = {}): Promise<void> {
  const [cursor, { epoch }] = [await store.read.frontier(tenant), await store.read.settings()];
  await store.fenced.checkpoint(fence, checkpointText({ cursor, at: await store.read.now(), epoch, ...more }));
}

export async function refuse(store: Store, { fence }: Term, journal: number, error: string): Promise<void> {
  const letter = { journal, seq: 1, inbox: false, kind: "run.created", attempts: 3, code: "422", error };
  await store.fenced.deadLetter(fence, { event: `${journal}:1:1794848992501`, ...letter });
}

/** Three sinks: one that is up to date, one that was paused, and one that refuses events; and a sharded singleton. */
export async function sinksOf(scene: Scene, store: Store, clock: PastClock): Promise<void> {
  const hold = (sink: string, label: string): Promise<Term> =>
    scene.acquire({ name: sinkLease(sink) }, label, "free", { reactor: "sink", ttlMs: hour });
  const paused = await hold("crm", "worker-b");
  const by = { by: "ada", reason: "the customer database is being moved", at: clock.wall() };
  await passAll(store, paused, { paused: by });
  const billing = await hold("billing", "worker-a");
  const [last, previous] = await store.read.runs(tenant, { limit: 2 });
  await refuse(store, billing, last!.journal, "no invoice has this number");
  await refuse(store, billing, previous!.journal, "the amount has three decimals");
  for (const index of [0, 1, 2]) {
    const label = index === 1 ? "worker-b" : "worker-a";
    await scene.acquire({ name: `sandboxes ${index}/4` }, label, "free", { reactor: "sandboxes", ttlMs: hour });
  }
  const bus = await hold("bus", "worker-a");
  await passAll(store, billing);
  await passAll(store, bus);
}
