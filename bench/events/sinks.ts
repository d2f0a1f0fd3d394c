import type { Sink } from "../../src/events/sink.ts";
import { cloudEventsSink } from "../../src/events/sinks/cloudevents.ts";
import { natsSink } from "../../src/events/sinks/nats.ts";
import { webhookSink } from "../../src/events/sinks/webhook.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { median, say } from "../work.ts";
import { Child } from "./child.ts";
import { feedTenant, fillFeed } from "./feed.ts";
import type { NatsSync } from "./nats.ts";
import type { EventPart, Figures } from "./part.ts";
import type { ReceiverMessage } from "./receiver-process.ts";
import type { EventSite } from "./site.ts";

export interface SinkSizes {
  readonly webhook: number;
  readonly cloudEvents: number;
  readonly nats: number;
  readonly rounds: number;
}

/**
 * Events a second from the feed of a store to a receiver in another process, with 16 lanes.
 *
 *   webhookPerSecond        one signed request an event
 *   cloudEventsPerSecond    batches of 100
 *   natsPerSecond           acknowledged by JetStream with the server's own default for its disk
 *   natsSyncedPerSecond     the same with `sync_interval: always`: each acknowledged event is on the disk
 */
export const sinkRates: EventPart<SinkSizes> = {
  usual: { webhook: 10_000, cloudEvents: 60_000, nats: 40_000, rounds: 3 },
  small: { webhook: 300, cloudEvents: 600, nats: 300, rounds: 1 },
  figures: ["webhookPerSecond", "cloudEventsPerSecond", "natsPerSecond", "natsSyncedPerSecond"],
  async measure(site, sizes) {
    const store = await openStore(await site.store("sqlite"));
    try {
      const events = await fillFeed(store, Math.max(sizes.webhook, sizes.cloudEvents, sizes.nats));
      const http = await overHttp(store, sizes, events);
      return { ...http, ...(await overNats(site, store, sizes, events)) };
    } finally {
      await store.close();
    }
  },
};

async function overHttp(store: Store, { webhook, cloudEvents, rounds }: SinkSizes, all: number): Promise<Figures> {
  const receiver = new Child<ReceiverMessage>("receiver-process.ts", []);
  try {
    const { url } = await receiver.receive("listens");
    const options = { url, allow: ["127.0.0.1"] };
    const secrets = [`whsec_${Buffer.alloc(32, 7).toString("base64")}`];
    const rate = async (name: string, events: number, make: () => Sink): Promise<number> => {
      const rates: number[] = [];
      for (let k = 0; k < rounds; k++) rates.push(await sent(store, `${name}-${k}`, make(), Math.min(events, all)));
      say(`${name}: ${rates.map(Math.round).join(", ")} events/s`);
      return Math.round(median(rates));
    };
    return {
      webhookPerSecond: await rate("webhook", webhook, () => webhookSink({ ...options, secrets })),
      cloudEventsPerSecond: await rate("cloudevents", cloudEvents, () => cloudEventsSink({ ...options, batch: 100 })),
    };
  } finally {
    await receiver.kill();
  }
}

async function overNats(site: EventSite, store: Store, { nats, rounds }: SinkSizes, all: number): Promise<Figures> {
  const rate = async (sync: NatsSync): Promise<number | null> => {
    const server = await site.nats(`nats (sync: ${sync})`, sync);
    if (server === undefined) return null;
    try {
      await server.manager.streams.add({ name: "events", subjects: ["tape.bench.>"], duplicate_window: 120e9 });
      const rates: number[] = [];
      for (let k = 0; k < rounds; k++) {
        // The same events again would be known by their ids, and stored by no stream.
        const sink = natsSink({ servers: server.url, prefix: "tape" });
        if (k > 0) await server.manager.streams.purge("events");
        rates.push(await sent(store, `nats-${sync}-${k}`, sink, Math.min(nats, all)));
      }
      say(`nats, sync ${sync}: ${rates.map(Math.round).join(", ")} events/s`);
      return Math.round(median(rates));
    } finally {
      await server.close();
    }
  };
  return { natsPerSecond: await rate("default"), natsSyncedPerSecond: await rate("always") };
}

/** Sends this many events through a fan-out from the start of the feed. Returns events a second. */
async function sent(store: Store, name: string, sink: Sink, events: number): Promise<number> {
  const runner = createRunner({ workflows: [] });
  await using app = await Tape.open({ store, runner, tenant: feedTenant, work: false, report: false, log: "warn" });
  const all = Promise.withResolvers<void>();
  let received = 0;
  const counted: Sink = {
    ...sink,
    async send(some, context) {
      const deliveries = await sink.send(some, context);
      received += deliveries === undefined ? some.length : deliveries.filter((one) => one === "ok").length;
      if (received >= events) all.resolve();
      return deliveries as never;
    },
  };
  const started = performance.now();
  const cpu = process.cpuUsage();
  app.fanouts.start({ name, sink: counted, from: "start", filter: { kinds: ["all"] }, lanes: 16 });
  await all.promise;
  const { user, system } = process.cpuUsage(cpu);
  say(`${name}: ${Math.round((user + system) / received)} µs of processor time an event`);
  return (received * 1_000) / (performance.now() - started);
}
