import { loadPeer } from "../../model/peer.ts";
import type { TapeEvent } from "../event.ts";
import type { Delivery, Sink } from "../sink.ts";
import { exactlyOne, nameOption, wholeOption } from "./options.ts";
import { SharedClient } from "./shared-client.ts";
import { unlessAborted } from "./unless-aborted.ts";
import { placeOf } from "./wire.ts";

/** What the sink uses of a client of the package `redis`. */
export interface RedisClient {
  /** Whether it is connected. */
  readonly isReady: boolean;
  /** Starts a transaction. */
  multi(): RedisTransaction;
}

/** Commands that Redis executes together or not at all. */
export interface RedisTransaction {
  /** Adds a command. */
  addCommand(args: string[]): RedisTransaction;
  /** Executes them. */
  exec(): Promise<unknown>;
}

/** Options of {@link redisSink}. */
export interface RedisSinkOptions {
  /** Such as `redis://127.0.0.1:6379`. */
  readonly url?: string;
  /** A connected client of your own in place of `url`. The sink does not close it. */
  readonly client?: RedisClient;
  /** Key of the stream; in a cluster with a hash tag: `{tape}`. Default `tape`. */
  readonly stream?: string;
  /** One stream for each journal, `tape:17`, in which Redis refuses repeats. Default false. */
  readonly perJournal?: boolean;
  /** About how many entries a stream keeps. Default 1 000 000, or 100 000 with `perJournal`. */
  readonly maxLength?: number;
  /** How long a journal's stream stays after its last event, in seconds. Default: 7 days. */
  readonly expireSeconds?: number;
}

interface OwnClient extends RedisClient {
  on(event: "error", listener: (error: unknown) => void): unknown;
  connect(): Promise<unknown>;
  close(): Promise<unknown>;
  destroy(): void;
}
interface RedisPackage {
  createClient(options: { readonly url: string; readonly disableOfflineQueue: boolean }): OwnClient;
}

const install = ["redis@^6.3.0"] as const;
const kept = { one: 1_000_000, perJournal: 100_000 };
const maxKept = 1_000_000_000;
const weekSeconds = 7 * 86_400;
const maxSeconds = 10 * 365 * 86_400;

/**
 * Appends events to a Redis stream, each as a structured CloudEvent in the field `event`. One batch is one transaction,
 * so that Redis has all of it in its order, or nothing.
 *
 * With `perJournal` an entry's id is `<epoch>-<seq>`, and Redis refuses one that is not above the last: repeats leave
 * no second entry. The epoch comes first because a restored store counts its records again from an earlier number.
 *
 * @example
 * const sink = redisSink({ url: "redis://127.0.0.1:6379" });
 */
export function redisSink(options: RedisSinkOptions): Sink {
  exactlyOne("redisSink", options, "url", "client");
  const { url, perJournal = false } = options;
  const stream = nameOption("redisSink", "stream", options.stream ?? "tape", /^\S+$/);
  const length = options.maxLength ?? (perJournal ? kept.perJournal : kept.one);
  const maxLength = wholeOption("redisSink", "maxLength", length, 1, maxKept);
  const seconds = options.expireSeconds ?? weekSeconds;
  const expireSeconds = wholeOption("redisSink", "expireSeconds", seconds, 1, maxSeconds);
  const shared = new SharedClient(() => connected(url!));
  return {
    label: `redis ${stream}`,
    limits: { events: 500, bytes: 8 * 1_048_576 },
    async send(events, { signal }): Promise<readonly Delivery[]> {
      const client = options.client ?? (await shared.get());
      const transaction = client.multi();
      for (const event of events) {
        const [key, id] = perJournal ? journalEntry(stream, event) : [stream, "*"];
        transaction.addCommand(["XADD", key, "MAXLEN", "~", `${maxLength}`, id, ...fieldsOf(event)]);
      }
      const keys = perJournal ? new Set(events.map((event) => journalEntry(stream, event)[0])) : [];
      for (const key of keys) transaction.addCommand(["EXPIRE", key, `${expireSeconds}`]);
      try {
        await unlessAborted(signal, () => transaction.exec());
        return events.map(() => "ok");
      } catch (error) {
        return deliveriesOf(events, error, perJournal);
      }
    },
    close: () => shared.close(async (own) => (own.isReady ? own.close() : own.destroy())),
  };
}

/** The client, loaded on first use. */
export const loadRedis = (): Promise<RedisPackage> => loadPeer<RedisPackage>("redis", "redisSink", install);

async function connected(url: string): Promise<OwnClient> {
  const { createClient } = await loadRedis();
  // The fan-out decides when to send again. A queue in the client would send behind its back, and in another order.
  const client = createClient({ url, disableOfflineQueue: true });
  // The client reconnects on its own. Sends fail until then, and the fan-out reports why.
  client.on("error", () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.destroy();
    throw error;
  }
}

const fieldsOf = (event: TapeEvent): string[] => [
  ...["id", event.id, "type", event.type, "subject", event.subject ?? ""],
  ...["event", JSON.stringify(event)],
];

/** A replayed dead letter is older than the stream's last entry, so it gets a stream beside. */
function journalEntry(stream: string, event: TapeEvent): readonly [key: string, id: string] {
  const { journal, seq } = placeOf(event);
  if (event.tapereplayed) return [`${stream}:${journal}:replayed`, "*"];
  return [`${stream}:${journal}`, `${event.tapeepoch}-${seq}`];
}

/** Replies of a transaction in which some commands failed; without them nothing is known about any. */
function deliveriesOf(events: readonly TapeEvent[], error: unknown, dropsRepeats: boolean): readonly Delivery[] {
  const { replies } = error as { replies?: readonly unknown[] };
  if (replies === undefined) throw error;
  return events.map((_, k): Delivery => {
    const reply = replies[k];
    if (!(reply instanceof Error)) return "ok";
    return dropsRepeats && /equal or smaller than the target stream top item/.test(reply.message)
      ? "ok"
      : { later: reply };
  });
}
