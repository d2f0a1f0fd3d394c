import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { systemClock } from "../src/base/clock.ts";
import { systemRandom } from "../src/base/random.ts";
import { openStore } from "../src/host/open-store.ts";
import { identify } from "../src/lease/identity.ts";
import { LeaseKeeper } from "../src/lease/keeper.ts";
import type { Store } from "../src/store/contract/store.ts";
import { startPostgres } from "../test/postgres/server.ts";
import type { Message } from "./handover-replica.ts";
import type { BenchOptions } from "./run.ts";
import { median, percentile, say } from "./work.ts";

const name = "handover";
const ttlMs = 2_000;
const gracefulRounds = 100;
const crashRounds = 7;
const polled = { everyMs: 5_000, standbys: 20 };

const round1 = (value: number): number => Math.round(value * 10) / 10;
const pause = (ms: number): Promise<void> => systemClock.sleep(ms);

/**
 * How long there is no leader, on a real PostgreSQL with each replica in its own process.
 *
 *   graceful        from the request to step down until the standby's body runs
 *   crash           kill -9: from the end of the dead holder's TTL until the standby's body runs; the worst of all rounds
 *   poll            graceful, with a standby that polls every five seconds and receives no wake hints
 */
export async function benchHandover(_options: BenchOptions): Promise<object> {
  const server = await startPostgres({ major: 18, settings: {} });
  // A TTL of two seconds needs a transaction bound below it.
  const url = `${server.url}?transaction_bound_ms=1000`;
  const store = await openStore(url);
  try {
    const graceful = await gracefully(url);
    const crash = await crashing(url, store);
    const poll = await polling(url);
    return {
      gracefulP50Ms: round1(median(graceful)),
      gracefulP99Ms: round1(percentile(graceful, 0.99)),
      crashOverTtlMs: round1(Math.max(...crash)),
      pollGracefulP50Ms: round1(median(poll)),
      rounds: { graceful: graceful.length, crash: crash.length, poll: poll.length },
    };
  } finally {
    await store.close();
    await server.stop();
  }
}

class Replica {
  readonly #process: ChildProcess;
  readonly #messages: Message[] = [];
  #received = (): void => {};

  constructor(url: string) {
    const file = fileURLToPath(new URL("handover-replica.ts", import.meta.url));
    this.#process = fork(file, [url, name, String(ttlMs)], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#process.on("message", (message: Message) => {
      this.#messages.push(message);
      this.#received();
    });
  }

  /** The time of the message, on the clock that all processes share. */
  async receive(what: Message["say"]): Promise<number> {
    for (;;) {
      const k = this.#messages.findIndex((message) => message.say === what);
      const [found] = k < 0 ? [] : this.#messages.splice(k, 1);
      if (found !== undefined) return "at" in found ? found.at : 0;
      await new Promise<void>((resolve) => {
        this.#received = resolve;
      });
    }
  }

  send(word: "step down" | "stand by"): void {
    this.#process.send(word);
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }
}

/** The first leader, and its standby. */
async function pair(url: string): Promise<[Replica, Replica]> {
  const holder = new Replica(url);
  await holder.receive("leads");
  const standby = new Replica(url);
  await standby.receive("ready");
  return [holder, standby];
}

async function gracefully(url: string): Promise<number[]> {
  let [holder, standby] = await pair(url);
  const times: number[] = [];
  for (let round = 0; round < gracefulRounds + 5; round++) {
    await pause(60); // until the other one stands by
    holder.send("step down");
    const requestedAt = await holder.receive("steps down");
    const led = await standby.receive("leads");
    if (round >= 5) times.push(led - requestedAt); // the first ones warm up
    holder.send("stand by"); // not earlier: it could win against the standby, which must receive a hint first
    [holder, standby] = [standby, holder];
  }
  say(`graceful: ${times.length} hand-overs, the longest took ${round1(Math.max(...times))} ms`);
  for (const replica of [holder, standby]) replica.kill();
  return times;
}

async function crashing(url: string, store: Store): Promise<number[]> {
  const times: number[] = [];
  let holder = new Replica(url);
  await holder.receive("leads"); // the last holder's lease has to expire first
  for (let round = 0; round < crashRounds; round++) {
    const standby = new Replica(url);
    await standby.receive("ready");
    await pause(100 + systemRandom.int(ttlMs / 2)); // anywhere between two heartbeats
    holder.kill();
    await pause(20); // whatever it had sent has arrived
    const requestedAt = systemClock.mono();
    const lease = await store.read.lease("default", { name });
    const expires = (requestedAt + systemClock.mono()) / 2 + (lease?.remainingMs ?? 0);
    times.push((await standby.receive("leads")) - expires);
    say(`crash: led ${round1(times.at(-1)!)} ms after the TTL had expired`);
    holder = standby;
  }
  holder.kill();
  return times;
}

/** The usual way: poll every five seconds. Runs enough pairs at once for a fair sample. */
async function polling(url: string): Promise<number[]> {
  const stores = await Promise.all([openStore(url), openStore(url)]);
  const [first, second] = stores.map((store) => new LeaseKeeper({ store, identity: identify({}, systemRandom) }));
  const times = await Promise.all(
    Array.from({ length: polled.standbys }, async (_, k) => {
      const lease = await first!.acquire(`polled-${k}`);
      const stepDown = async (): Promise<number> => {
        await pause(polled.everyMs + 500);
        const requestedAt = systemClock.mono();
        await lease!.release();
        return requestedAt;
      };
      const standby = async (): Promise<number> => {
        await pause((k * polled.everyMs) / polled.standbys); // each in a phase of its own
        while ((await second!.acquireOrSteal(`polled-${k}`)) === undefined) await pause(polled.everyMs);
        return systemClock.mono();
      };
      const [requestedAt, led] = await Promise.all([stepDown(), standby()]);
      return led - requestedAt;
    }),
  );
  for (const keeper of [first!, second!]) keeper.close();
  await Promise.all(stores.map((store) => store.close()));
  say(`poll: median ${round1(median(times))} ms`);
  return times;
}
