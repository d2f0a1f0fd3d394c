import type { Duration } from "../base/duration.ts";
import { TapeError } from "../model/errors.ts";
import { assertKnownKeys, assertName, assertOneOf, durationOf } from "../sdk/validate.ts";
import { type Payload, payloads } from "./event.ts";
import { type EventFilter, matcherOf } from "./filter.ts";
import type { FanoutSettings } from "./settings.ts";
import type { Sink } from "./sink.ts";

/** What a fan-out sends where. */
export interface FanoutOptions {
  /** Names the sink: its lease is `sink NAME`, and its checkpoint belongs to it. */
  readonly name: string;
  /** Where the events go. */
  readonly sink: Sink;
  /** Which records become events. Default: an outline of what happens to runs. */
  readonly filter?: EventFilter;
  /** "facts" (default): no value of a user leaves the store. "values": whole records. "none": only their kinds. */
  readonly payload?: Payload;
  /** Where the first start begins: "now" (default) or "start". Later ones continue from the checkpoint. */
  readonly from?: "now" | "start";
  /** Runs are spread over this many lanes, which send in parallel. Default 16. */
  readonly lanes?: number;
  /** Events ahead of the checkpoint before reading stops: as many may be repeated after a crash. Default 4 000. */
  readonly window?: number;
  /** How long one call of the sink may take. Default 60 s. */
  readonly timeout?: Duration;
  /** How long a stop waits for events under way. Default 10 s. */
  readonly drain?: Duration;
}

const keys = ["name", "sink", "filter", "payload", "from", "lanes", "window", "timeout", "drain"] as const;
const maxLanes = 256;
const maxWindow = 100_000;

export function settingsOf(options: FanoutOptions): FanoutSettings {
  const subject = "a fan-out";
  assertKnownKeys(subject, options, keys);
  const { name, sink, filter, payload = "facts", from = "now", lanes = 16, window = 4_000 } = options;
  assertName(subject, name);
  if (typeof sink?.send !== "function") throw bad("sink", "must be a sink, such as webhookSink({ url, secrets })");
  assertOneOf(subject, "payload", payload, payloads);
  assertOneOf(subject, "from", from, ["now", "start"]);
  checkCount("lanes", lanes, maxLanes);
  checkCount("window", window, maxWindow);
  return {
    ...{ name, sink, payload, from, lanes, window, matcher: matcherOf(filter) },
    sendMs: durationOf(subject, "timeout", options.timeout, 60_000),
    drainMs: durationOf(subject, "drain", options.drain, 10_000),
  };
}

function checkCount(field: string, value: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return;
  throw bad(field, `must be a whole number from 1 to ${max}`);
}

const bad = (field: string, message: string): TapeError =>
  new TapeError("TAPE_BAD_INPUT", `a fan-out: ${field} ${message}`, { field });
