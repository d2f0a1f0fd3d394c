import { type Clock, systemClock } from "../../base/clock.ts";
import { machineToken } from "../../base/google-token.ts";
import { isLoopbackAddress } from "../../base/loopback.ts";
import { TapeError } from "../../model/errors.ts";
import { nameOption } from "./options.ts";

/** A topic of Google Cloud Pub/Sub, and how to reach it. */
export interface PubsubTopicOptions {
  /** `projects/<project>/topics/<topic>`. */
  readonly topic: string;
  /** Order within a run needs one region: `https://europe-west1-pubsub.googleapis.com`. Global unless you choose one. */
  readonly endpoint?: string;
  /** An access token; by default that of the machine's service account. `undefined` sends none, as an emulator wants. */
  readonly token?: (signal: AbortSignal) => Promise<string | undefined> | string | undefined;
  readonly clock?: Clock;
}

const globalEndpoint = "https://pubsub.googleapis.com";

/** Publishes messages to the topic through the REST interface. Wrong options are refused at once. */
export function pubsubTopic(
  subject: string,
  options: PubsubTopicOptions,
): (messages: readonly object[], signal: AbortSignal) => Promise<Response> {
  const { endpoint = globalEndpoint, clock = systemClock } = options;
  const topic = nameOption(subject, "topic", options.topic, /^projects\/[^/\s]+\/topics\/[^/\s]+$/);
  const url = urlOf(subject, endpoint, topic);
  const token = options.token ?? machineToken(clock);
  return async (messages, signal) => {
    const bearer = await token(signal);
    return fetch(url, {
      ...{ method: "POST", redirect: "error", signal },
      headers: {
        "content-type": "application/json",
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      },
      body: JSON.stringify({ messages }),
    });
  };
}

/** A token must not travel in the clear: only an emulator on this machine may be reached without TLS. */
function urlOf(subject: string, endpoint: string, topic: string): URL {
  const url = URL.canParse(endpoint) ? new URL(`/v1/${topic}:publish`, endpoint) : undefined;
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLoopbackAddress(url.hostname))) return url;
  const fix = "write https://…, or http:// with a loopback address";
  throw new TapeError("TAPE_BAD_INPUT", `${subject}: endpoint ${endpoint.slice(0, 200)}; ${fix}`, {
    field: "endpoint",
  });
}
