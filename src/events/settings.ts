import type { SinkPause } from "../model/sink-checkpoint.ts";
import type { Payload } from "./event.ts";
import type { Matcher } from "./filter.ts";
import type { Sink } from "./sink.ts";

/** A checked fan-out. */
export interface FanoutSettings {
  readonly name: string;
  readonly sink: Sink;
  readonly matcher: Matcher;
  readonly payload: Payload;
  readonly from: "now" | "start";
  readonly lanes: number;
  /** Events ahead of the checkpoint at which reading stops: a successor repeats at most these. */
  readonly window: number;
  readonly sendMs: number;
  readonly drainMs: number;
}

/** Counters since the process started. */
export interface FanoutCounts {
  delivered: number;
  retries: number;
  deadLetters: number;
}

/** What a fan-out shows of its term. */
export interface TermStatus {
  state: "running" | "retrying" | "paused";
  lastError: string | undefined;
  paused: SinkPause | undefined;
}
