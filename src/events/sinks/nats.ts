import { loadPeer } from "../../model/peer.ts";
import type { TapeEvent } from "../event.ts";
import type { Delivery, Sink } from "../sink.ts";
import { runByRun } from "./in-order.ts";
import { exactlyOne, nameOption, wholeOption } from "./options.ts";
import { SharedClient } from "./shared-client.ts";
import { Turns } from "./turns.ts";
import { tokenOf } from "./wire.ts";

/** What the sink uses of a connection of `@nats-io/transport-node`. */
export interface NatsConnection {
  /** What the server says about itself. */
  readonly info?: { readonly max_payload: number };
  /** Whether it is closed. */
  isClosed(): boolean;
  /** Closes it. */
  close(): Promise<void>;
}

/** Options of {@link natsSink}. */
export interface NatsSinkOptions {
  /** Addresses of one server or cluster, such as `nats://127.0.0.1:4222`. Default: the connection. */
  readonly servers?: string | readonly string[];
  /** Further options of the client's `connect`: `token`, `user`, `pass`, `tls`, `authenticator`. */
  readonly connect?: Readonly<Record<string, unknown>>;
  /** A connection of your own in place of `servers`. The sink does not close it. */
  readonly connection?: NatsConnection;
  /** Begins every subject: `tape.<tenant>.<workflow>.<kind>` unless you choose another. */
  readonly prefix?: string;
  /** How long an acknowledgement of the stream may take. Default 5 000. */
  readonly timeoutMs?: number;
}

interface Publisher {
  publish(
    subject: string,
    payload: string,
    options: { readonly msgID: string; readonly timeout: number; readonly headers: object },
  ): Promise<unknown>;
}
interface Transport {
  connect(options: Readonly<Record<string, unknown>>): Promise<NatsConnection>;
  headers(): { set(name: string, value: string): void };
}
interface JetStream {
  jetstream(connection: NatsConnection): Publisher;
}

const packages = ["@nats-io/transport-node@^3.4.0", "@nats-io/jetstream@^3.4.0"] as const;
const ackMs = 5_000;
const maxAckMs = 60_000;
const defaultMaxPayload = 1_048_576;
/** JetStream's codes for a message that this stream never takes: larger than its `max_msg_size`. */
const tooLarge = new Set([10_054]);
/**
 * Messages that wait for their acknowledgement. A server that writes each to its disk takes 700 a second: four thousand
 * at once would wait for longer than the time-out of the first. One that does not is busy with far fewer than these.
 */
const maxInFlight = 512;
/** Room for the subject and the headers, which count towards the server's `max_payload`. */
const headerBytes = 4_096;

/**
 * Publishes events to JetStream, each as a structured CloudEvent with its id as the message's id, so that a stream
 * drops repeats within its `duplicate_window`. A stream for `tape.>` has to exist.
 *
 * One event of a run is under way at a time, and all runs at once. A cluster that changes its leader may lose one
 * message and take the next: several of one run would then arrive in another order.
 *
 * @example
 * const sink = natsSink({ servers: "nats://127.0.0.1:4222" });
 */
export function natsSink(options: NatsSinkOptions): Sink {
  exactlyOne("natsSink", options, "servers", "connection");
  const prefix = nameOption("natsSink", "prefix", options.prefix ?? "tape", /^[\w-]+(\.[\w-]+)*$/);
  const timeoutMs = wholeOption("natsSink", "timeoutMs", options.timeoutMs ?? ackMs, 1, maxAckMs);
  const shared = new SharedClient(
    () => open(options),
    ({ connection }) => connection.isClosed(),
  );
  const turns = new Turns(maxInFlight);
  return {
    label: `nats ${prefix}.>`,
    limits: { events: 1_000, bytes: 8 * 1_048_576 },
    async send(events, { signal }) {
      const { publisher, connection, contentType } = await shared.get();
      const maxBytes = (connection.info?.max_payload ?? defaultMaxPayload) - headerBytes;
      return runByRun(events, async (event): Promise<Delivery> => {
        if (signal.aborted) return { later: signal.reason };
        const payload = JSON.stringify(event);
        const bytes = Buffer.byteLength(payload);
        if (bytes > maxBytes) {
          const never = `the event takes ${bytes} bytes, and the server at most ${maxBytes}`;
          return { never, code: "too_large" };
        }
        await turns.take();
        try {
          if (signal.aborted) return { later: signal.reason };
          await publisher.publish(subjectOf(prefix, event), payload, {
            ...{ msgID: event.id, timeout: timeoutMs, headers: contentType() },
          });
          return "ok";
        } catch (error) {
          return tooLarge.has((error as { code?: number }).code ?? 0)
            ? { never: error, code: "too_large" }
            : { later: error };
        } finally {
          turns.give();
        }
      });
    },
    async close() {
      if (options.connection === undefined) await shared.close(({ connection }) => connection.close());
    },
  };
}

interface Client {
  readonly connection: NatsConnection;
  readonly publisher: Publisher;
  readonly contentType: () => object;
}

/** The client, loaded on first use. */
export async function loadNats(neededBy = "natsSink"): Promise<Transport & JetStream> {
  const { connect, headers } = await loadPeer<Transport>("@nats-io/transport-node", neededBy, packages);
  const { jetstream } = await loadPeer<JetStream>("@nats-io/jetstream", neededBy, packages);
  return { connect, headers, jetstream };
}

async function open({ servers, connect, connection }: NatsSinkOptions): Promise<Client> {
  const nats = await loadNats();
  const connected = connection ?? (await nats.connect({ maxReconnectAttempts: -1, ...connect, servers }));
  return {
    connection: connected,
    publisher: nats.jetstream(connected),
    contentType() {
      const headers = nats.headers();
      headers.set("content-type", "application/cloudevents+json");
      return headers;
    },
  };
}

/** `tape.<tenant>.<workflow>.<kind>`; the kind keeps its dots, so that `tape.*.*.run.>` selects what runs do. */
function subjectOf(prefix: string, { source, type, data }: TapeEvent): string {
  const tenant = decodeURIComponent(source.split("/").at(-1) ?? "");
  const kind = type.replace(/^dev\.tape\./, "");
  return `${prefix}.${tokenOf(tenant)}.${tokenOf(data.run?.workflow ?? "")}.${kind}`;
}
