import { eventIdOf } from "../src/events/event.ts";
import { sinkLease } from "../src/model/dead-letter.ts";
import { readCheckpoint } from "../src/model/sink-checkpoint.ts";
import { wholeFeed } from "./shared-store.ts";
import { type Stage, tenant } from "./stage.ts";
import { sinkName, type WorldSink } from "./world-sink.ts";

const checkEveryMs = 5_000;
const restMs = 600_000;

/** Waits until the sink's checkpoint is behind every record of the tenant. */
export async function sinkCaughtUp({ shared: { store }, time }: Stage, withinMs: number): Promise<boolean> {
  for (const until = time.now + withinMs; time.now < until; await time.sleep(checkEveryMs)) {
    const lease = await store.read.lease(tenant, { name: sinkLease(sinkName) });
    const checkpoint = readCheckpoint(lease?.checkpoint);
    if (checkpoint === undefined || lease?.state !== "HELD") continue;
    const page = await store.read.feed(checkpoint.cursor ?? undefined, 1, tenant);
    if (page.records.length === 0 && page.more !== true) return true;
  }
  return false;
}

/** Notes what the sink should have received, and what is written in ten minutes without any work. */
export async function restOf({ shared: { store }, time }: Stage, sink: WorldSink): Promise<void> {
  const before = await wholeFeed(store, tenant);
  sink.records = before.map(eventIdOf);
  await time.sleep(restMs);
  const written = (await wholeFeed(store, tenant)).slice(before.length);
  // A process whose clock is set may lose its lease, and another takes it.
  sink.writtenAtRest = written.filter(({ kind }) => kind !== "term.started" && kind !== "term.ended").length;
}

/** Calls to the store in ten minutes, once no alarm of a serverless world is set any more; undefined: one always is. */
export async function callsAtRest(stage: Stage, withinMs: number): Promise<number | undefined> {
  const { time, alarmService } = stage;
  if (alarmService === undefined) return undefined;
  for (const until = time.now + withinMs; alarmService.tasks.pending.length > 0; await time.sleep(checkEveryMs)) {
    if (time.now > until) return undefined;
  }
  await time.sleep(checkEveryMs); // a call that is under way
  const before = stage.storeCalls;
  alarmService.resting = true;
  await time.sleep(restMs);
  return stage.storeCalls - before;
}
