import { createHash } from "node:crypto";
import { type Clock, systemClock } from "../../base/clock.ts";
import { isLoopbackAddress } from "../../base/loopback.ts";
import { TapeError } from "../../model/errors.ts";
import type { TapeEvent } from "../event.ts";
import type { Delivery, Sink } from "../sink.ts";
import { deliveryOf } from "./http.ts";
import { nameOption } from "./options.ts";
import { attributesOf } from "./wire.ts";

/** Options of {@link pubsubSink}. */
export interface PubsubSinkOptions {
  /** `projects/<project>/topics/<topic>`. */
  readonly topic: string;
  /** Order within a run needs one region: `https://europe-west1-pubsub.googleapis.com`. Global unless you choose one. */
  readonly endpoint?: string;
  /** An access token; by default that of the machine's service account. `undefined` sends none, as an emulator wants. */
  readonly token?: (signal: AbortSignal) => Promise<string | undefined> | string | undefined;
  readonly clock?: Clock;
}

const globalEndpoint = "https://pubsub.googleapis.com";
const metadataHost = "metadata.google.internal";
const tokenPath = "/computeMetadata/v1/instance/service-accounts/default/token";
/** Pub/Sub's bounds for ordering keys and for values of attributes. */
const maxTextBytes = 1_024;
const maxShown = 500;

/**
 * Publishes events to a topic of Google Cloud Pub/Sub, through its REST interface: attributes of CloudEvents as `ce-`
 * attributes, the root run as ordering key. Subscribers drop repeats by `ce-id`.
 */
export function pubsubSink(options: PubsubSinkOptions): Sink {
  const { endpoint = globalEndpoint, clock = systemClock } = options;
  const topic = nameOption("pubsubSink", "topic", options.topic, /^projects\/[^/\s]+\/topics\/[^/\s]+$/);
  const url = urlOf(endpoint, topic);
  const token = options.token ?? machineToken(clock);
  const publish = async (events: readonly TapeEvent[], signal: AbortSignal): Promise<Response> => {
    const bearer = await token(signal);
    return fetch(url, {
      ...{ method: "POST", redirect: "error", signal },
      headers: {
        "content-type": "application/json",
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      },
      body: JSON.stringify({ messages: events.map(messageOf) }),
    });
  };
  return {
    label: `pubsub ${topic}`,
    // Pub/Sub takes 10 MB in one call, in which base64 makes four bytes of three.
    limits: { events: 1_000, bytes: 6_500_000 },
    async send(events, { signal }): Promise<Delivery[]> {
      const response = await publish(events, signal);
      const text = await response.text();
      // All or nothing: of a refused batch, the lane sends each event alone.
      const delivery = response.ok ? "ok" : verdictOf(response, text);
      return events.map(() => delivery);
    },
  };
}

/** A token must not travel in the clear: only an emulator on this machine may be reached without TLS. */
function urlOf(endpoint: string, topic: string): URL {
  const url = URL.canParse(endpoint) ? new URL(`/v1/${topic}:publish`, endpoint) : undefined;
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLoopbackAddress(url.hostname))) return url;
  const fix = "write https://…, or http:// with a loopback address";
  throw new TapeError("TAPE_BAD_INPUT", `pubsubSink: endpoint ${endpoint.slice(0, 200)}; ${fix}`, {
    field: "endpoint",
  });
}

function messageOf(event: TapeEvent): object {
  const fits = ([, value]: readonly [string, string]): boolean => Buffer.byteLength(value) <= maxTextBytes;
  const attributes = attributesOf(event)
    .filter(fits)
    .map(([name, value]) => [`ce-${name}`, value] as const);
  return {
    data: Buffer.from(JSON.stringify(event.data)).toString("base64"),
    attributes: { "content-type": "application/json", ...Object.fromEntries(attributes) },
    orderingKey: orderingKeyOf(event.partitionkey),
  };
}

/** A run's id may be longer than a key in bytes; its hash keeps the order just as well. */
const orderingKeyOf = (key: string): string =>
  Buffer.byteLength(key) <= maxTextBytes ? key : createHash("sha256").update(key).digest("hex");

function verdictOf({ status, headers }: Response, text: string): Delivery {
  const seconds = Number(headers.get("retry-after"));
  const afterMs = seconds > 0 ? seconds * 1_000 : undefined;
  return deliveryOf(status, `Pub/Sub answered ${status}: ${text.slice(0, maxShown)}`, afterMs);
}

/** The token of the machine's service account, kept until a minute before it expires. */
function machineToken(clock: Clock): (signal: AbortSignal) => Promise<string> {
  let token: { readonly text: string; readonly until: number } | undefined;
  return async (signal) => {
    if (token !== undefined && clock.mono() < token.until) return token.text;
    // The variable by which Google's own clients find another metadata server.
    const host = process.env.GCE_METADATA_HOST ?? metadataHost;
    const response = await fetch(`http://${host}${tokenPath}`, {
      ...{ headers: { "metadata-flavor": "Google" }, redirect: "error", signal },
    });
    if (!response.ok) throw new Error(`the metadata server answered ${response.status}: pass token()`);
    const answer = (await response.json()) as { access_token: string; expires_in: number };
    token = { text: answer.access_token, until: clock.mono() + (answer.expires_in - 60) * 1_000 };
    return token.text;
  };
}
