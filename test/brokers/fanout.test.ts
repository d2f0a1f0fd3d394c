import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { createClient } from "redis";
import { afterEach, describe, expect, it } from "vitest";
import type { TapeEvent } from "../../src/events/event.ts";
import type { Sink } from "../../src/events/sink.ts";
import { createRunner, runEventFanout, Tape, workflow } from "../../src/exports/index.ts";
import { natsSink } from "../../src/exports/nats.ts";
import { redisSink } from "../../src/exports/redis.ts";
import { sequences } from "./sending.ts";
import { type Broker, startNats, startRedis } from "./servers/servers.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const steps = workflow("steps", async (tape, count: number) => {
  for (let k = 0; k < count; k++) await tape.step(`step-${k}`, () => k);
});
const runs = 20;
const count = 10;

/** Runs workflows while a fan-out sends every record, and kills the server after some have arrived. */
async function fannedOut(sink: Sink, server: Broker, arrived: () => Promise<number>): Promise<void> {
  const app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [steps] }) });
  closing.push(() => app.close());
  const fanout = await runEventFanout(app, { name: "bus", sink, from: "start", filter: { kinds: ["all"] } });
  const start = async (k: number) => (await app.start(steps, count, { id: `run-${k}` })).result();
  await Promise.all(Array.from({ length: runs / 2 }, (_, k) => start(k)));
  await expect.poll(arrived).toBeGreaterThan(20);
  await server.kill();
  const others = Promise.all(Array.from({ length: runs / 2 }, (_, k) => start(runs / 2 + k)));
  await expect.poll(() => fanout.view().lastError, { timeout: 20_000 }).toBeDefined();
  await server.start();
  await others;
  await expect
    .poll(() => fanout.view(), { timeout: 40_000 })
    .toMatchObject({ inFlight: 0, deadLetters: 0, lagMs: 0, state: "running" });
  await fanout.stop();
}

/** Each journal of a run is whole: created, every step, ended. */
function expectWhole(events: readonly TapeEvent[], repeats: boolean): void {
  const ofRuns = events.filter(({ subject, id }) => subject?.startsWith("run-") && !id.includes("i:"));
  const found = sequences(ofRuns);
  expect(Object.keys(found)).toHaveLength(runs);
  for (const [run, numbers] of Object.entries(found)) {
    const first = [...new Set(numbers)];
    expect(first, run).toEqual(Array.from({ length: first.length }, (_, k) => k + 1));
    if (!repeats) expect(numbers).toEqual(first);
    const kinds = ofRuns.filter(({ subject }) => subject === run).map(({ type }) => type);
    expect(kinds.filter((kind) => kind === "dev.tape.step.done").length).toBeGreaterThanOrEqual(count);
    expect(kinds.at(-1)).toBe("dev.tape.run.ended");
  }
}

describe("a fan-out to a broker that is killed and started again", () => {
  it("sends every record of every run to NATS, in order and once", async () => {
    const server = await startNats();
    closing.push(() => server.stop());
    const connection = await connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    closing.push(() => connection.close());
    const manager = await jetstreamManager(connection, { timeout: 1_000 });
    await manager.streams.add({ name: "TAPE", subjects: ["tape.>"] });
    const arrived = async () => (await manager.streams.info("TAPE")).state.messages;
    await fannedOut(
      natsSink({ servers: server.url, timeoutMs: 500, connect: { reconnectTimeWait: 50 } }),
      server,
      arrived,
    );
    const total = await arrived();
    const messages = await Promise.all(
      Array.from({ length: total }, (_, k) => manager.streams.getMessage("TAPE", { seq: k + 1 })),
    );
    expectWhole(
      messages.map((message) => message!.json<TapeEvent>()),
      false,
    );
  });

  it("sends every record of every run to Redis, in order and once for each journal", async () => {
    const server = await startRedis();
    closing.push(() => server.stop());
    const client = await createClient({ url: server.url })
      .on("error", () => {})
      .connect();
    closing.push(() => client.destroy());
    const keys = async () => (await client.keys("tape:*")).filter((key) => /:\d+$/.test(key));
    const arrived = async () => (await keys()).length;
    const sink = redisSink({ url: server.url, perJournal: true });
    await fannedOut(sink, server, async () => ((await arrived()) >= runs / 2 ? 21 : 0));
    await expect.poll(() => client.isReady).toBe(true);
    const entries = await Promise.all((await keys()).map((key) => client.xRange(key, "-", "+")));
    expectWhole(
      entries.flatMap((own) => own!.map(({ message }) => JSON.parse(message.event!) as TapeEvent)),
      false,
    );
  });
});
