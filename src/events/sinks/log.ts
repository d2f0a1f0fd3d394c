import type { Log, LogLevel } from "../../base/log.ts";
import type { Sink } from "../sink.ts";

/** Options of a {@link logSink}. */
export interface LogSinkOptions {
  /** Where the lines go. */
  readonly log: Log;
  /** Default "info". */
  readonly level?: LogLevel;
}

/**
 * A sink that writes each event as a log line `event`.
 *
 * @example
 * const sink = logSink({ log: (level, name, fields) => console.log(level, name, fields) });
 */
export function logSink({ log, level = "info" }: LogSinkOptions): Sink {
  return {
    label: "log",
    limits: { events: 1_000 },
    send: (events) => {
      for (const { id, type, subject, time, data } of events) log(level, "event", { id, type, subject, time, data });
      return Promise.resolve();
    },
  };
}
