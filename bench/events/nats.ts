import "../../test/brokers/clients.ts";
import type { Alarms } from "../../src/alarm/alarms.ts";
import {
  type NatsConsumer,
  type NatsPublisher,
  natsAlarmConsumer,
  natsAlarmStream,
  natsAlarms,
  type RunningSweeps,
  runSweeps,
} from "../../src/alarm/nats.ts";
import type { NatsConnection } from "../../src/events/sinks/nats.ts";
import { loadPeer } from "../../src/model/peer.ts";
import { installClients } from "../../test/brokers/servers/install.ts";
import { startNats } from "../../test/brokers/servers/servers.ts";

/** When the server writes to its disk; see `startNats`. */
export type NatsSync = "always" | "default";

interface Manager {
  readonly streams: {
    add(stream: object): Promise<unknown>;
    purge(name: string): Promise<unknown>;
  };
  readonly consumers: { add(stream: string, consumer: object): Promise<unknown> };
}
interface JetStreamModule {
  jetstream(connection: NatsConnection): NatsPublisher & {
    readonly consumers: { get(stream: string, consumer: string): Promise<NatsConsumer> };
  };
  jetstreamManager(connection: NatsConnection): Promise<Manager>;
}
interface TransportModule {
  connect(options: object): Promise<NatsConnection>;
}

/** A client of a NATS server that has the stream of alarms. */
export interface NatsClient {
  readonly alarms: Alarms;
  readonly manager: Manager;
  /** Sweeps for each alarm of the tenant. */
  sweeps(tenant: string, app: { sweep(): Promise<unknown> }): Promise<RunningSweeps>;
  close(): Promise<void>;
}

export interface NatsSite extends NatsClient {
  readonly url: string;
}

/** Opens a client. A process that loads this module finds the client's package beside the tests of brokers. */
export async function openNats(url: string): Promise<NatsClient> {
  const transport = await loadPeer<TransportModule>("@nats-io/transport-node", "the benchmark");
  const { jetstream, jetstreamManager } = await loadPeer<JetStreamModule>("@nats-io/jetstream", "the benchmark");
  const connection = await transport.connect({ servers: url });
  const manager = await jetstreamManager(connection);
  const client = jetstream(connection);
  return {
    alarms: natsAlarms({ jetstream: client }),
    manager,
    async sweeps(tenant, app) {
      const consumer = natsAlarmConsumer(tenant);
      await manager.consumers.add(natsAlarmStream().name, consumer);
      return runSweeps(await client.consumers.get(natsAlarmStream().name, consumer.durable_name), app);
    },
    close: () => connection.close(),
  };
}

/** Starts a server with the stream of alarms. Throws the reason where no server or no client can be had. */
export async function startNatsSite(sync: NatsSync): Promise<NatsSite> {
  installClients();
  const server = await startNats(sync);
  const client = await openNats(server.url);
  await client.manager.streams.add(natsAlarmStream());
  return {
    ...client,
    url: server.url,
    async close() {
      await client.close();
      await server.stop();
    },
  };
}
