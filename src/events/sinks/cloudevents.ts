import { TapeError } from "../../model/errors.ts";
import { assertKnownKeys } from "../../sdk/validate.ts";
import type { TapeEvent } from "../event.ts";
import type { Delivery, Sink } from "../sink.ts";
import { type HttpSinkOptions, HttpTarget, httpSinkKeys } from "./http.ts";

/** How CloudEvents are written into HTTP requests. */
export const cloudEventModes = ["batch", "structured", "binary"] as const;
/** How events travel: many in one request, one as JSON, or one with its attributes as headers. */
export type CloudEventMode = (typeof cloudEventModes)[number];

/** Options of a {@link cloudEventsSink}. */
export interface CloudEventsOptions extends HttpSinkOptions {
  /** Default "batch": several events in one request. */
  readonly mode?: CloudEventMode;
  /** Events of one batch. Default 100. */
  readonly batch?: number;
  /** Bytes of one request. Default 1 MiB; a larger event is a dead letter. */
  readonly maxBytes?: number;
}

const defaultBatch = 100;
const maxBatch = 1_000;
const defaultBytes = 1024 * 1024;

/**
 * A sink that posts CloudEvents 1.0 over HTTP: batched, structured (one event as JSON) or binary (attributes as headers,
 * the data as the body).
 *
 * @example
 * const sink = cloudEventsSink({ url: "https://events.example/in", mode: "structured" });
 */
export function cloudEventsSink(options: CloudEventsOptions): Sink {
  const subject = "a CloudEvents sink";
  assertKnownKeys(subject, options, [...httpSinkKeys, "mode", "batch", "maxBytes"]);
  const { mode = "batch", batch = defaultBatch, maxBytes = defaultBytes } = options;
  if (!cloudEventModes.includes(mode)) throw bad(subject, "mode", `must be ${cloudEventModes.join(", ")}`);
  if (!Number.isSafeInteger(batch) || batch < 1 || batch > maxBatch) {
    throw bad(subject, "batch", `must be a whole number from 1 to ${maxBatch}`);
  }
  const target = new HttpTarget(subject, options);
  return {
    label: `cloudevents ${target.label}`,
    limits: { events: mode === "batch" ? batch : 1, bytes: maxBytes },
    async send(events, { signal }): Promise<Delivery[]> {
      const { body, headers } = requestOf(mode, events);
      const size = Buffer.byteLength(body);
      const delivery: Delivery =
        size > maxBytes
          ? { never: `the request takes ${size} bytes, at most ${maxBytes} are sent`, code: "too_large" }
          : await target.post(body, headers, signal);
      return events.map(() => delivery);
    },
    close: () => Promise.resolve(target.close()),
  };
}

interface CloudEventRequest {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** JSON is UTF-8, so no charset: receivers that compare the whole content type would refuse it. */
export function requestOf(mode: CloudEventMode, events: readonly TapeEvent[]): CloudEventRequest {
  if (mode === "batch") {
    return {
      body: JSON.stringify(events),
      headers: { "content-type": "application/cloudevents-batch+json" },
    };
  }
  const [event] = events as [TapeEvent];
  if (mode === "structured") {
    return { body: JSON.stringify(event), headers: { "content-type": "application/cloudevents+json" } };
  }
  const { data, datacontenttype, ...attributes } = event;
  const headers: Record<string, string> = { "content-type": datacontenttype };
  for (const [name, value] of Object.entries(attributes)) headers[`ce-${name}`] = headerText(String(value));
  return { body: JSON.stringify(data), headers };
}

/** As the HTTP binding of CloudEvents encodes header values: spaces, quotes, per cent signs and all beyond ASCII. */
const headerText = (text: string): string =>
  text.toWellFormed().replace(/[^\x21\x23\x24\x26-\x7e]/gu, (letter) => encodeURIComponent(letter));

const bad = (subject: string, field: string, message: string): TapeError =>
  new TapeError("TAPE_BAD_INPUT", `${subject}: ${field} ${message}`, { field });
