import { systemClock } from "./clock.ts";
import { safeJson, visible } from "./text.ts";

/** The severity of a log line. */
export type LogLevel = "debug" | "info" | "warn" | "error";
/** Writes one structured line. Fields are plain values. No code above this folder writes to a console. */
export type Log = (level: LogLevel, event: string, fields?: Readonly<Record<string, unknown>>) => void;

/** A custom log, the lowest level that the standard log writes, or "silent" for none. */
export type LogOption = Log | LogLevel | "silent";

export const logLevels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/**
 * A log that writes nothing.
 *
 * @example
 * await using app = await Tape.open({ store: "memory:", runner, log: silentLog });
 */
export const silentLog: Log = () => {};

/**
 * Writes JSON lines through `write`, e.g. `(line) => process.stderr.write(line)`.
 *
 * @example
 * const log = jsonLog((line) => process.stderr.write(`${line}\
 * `));
 */
export function jsonLog(
  write: (line: string) => void,
  wall: () => number = systemClock.wall,
  minLevel: LogLevel = "info",
): Log {
  return atLeast(minLevel, (level, event, fields) => {
    write(`${safeJson(stringified({ at: new Date(wall()).toISOString(), level, event, ...fields }))}\n`);
  });
}

/** Writes a readable line: `tape warn run.failed run=pay-7: TypeError: … Next: …` */
export function humanLog(write: (line: string) => void, minLevel: LogLevel = "warn"): Log {
  return atLeast(minLevel, (level, event, { error, next, ...fields } = {}) => {
    const about = Object.entries(fields).flatMap(([key, value]) =>
      value === undefined || value === null || (key === "code" && textOf(error).includes(textOf(value)))
        ? []
        : [` ${key}=${quoted(textOf(value))}`],
    );
    const why = error === undefined ? "" : `: ${textOf(error)}`;
    const then = typeof next === "string" ? ` Next: ${next}` : "";
    write(`${visible(`tape ${level} ${event}${about.join("")}${why}${then}`)}\n`);
  });
}

/** Writes to stderr: readable lines on a terminal, JSON lines otherwise. */
export function standardLog(minLevel: LogLevel = "warn", out: StandardError = process.stderr): Log {
  const write = (line: string): void => void out.write(line);
  return out.isTTY === true ? humanLog(write, minLevel) : jsonLog(write, undefined, minLevel);
}

interface StandardError {
  readonly isTTY?: boolean;
  write(line: string): unknown;
}

/** The log that an option selects. The default is the standard log at warn. */
export function logOf(option: LogOption | undefined): Log {
  if (option === "silent") return silentLog;
  return typeof option === "function" ? option : standardLog(option);
}

function atLeast(minLevel: LogLevel, log: Log): Log {
  const rank = logLevels.indexOf(minLevel);
  return (level, event, fields) => {
    if (logLevels.indexOf(level) >= rank) log(level, event, fields);
  };
}

/** A log that throws must not break the work that it reports. */
function stringified(line: object): string {
  try {
    return JSON.stringify(line, (_key, value) => (typeof value === "bigint" ? value.toString() : value));
  } catch {
    return JSON.stringify({ ...Object.fromEntries(Object.entries(line).map(([key, value]) => [key, String(value)])) });
  }
}

function textOf(value: unknown): string {
  return typeof value === "object" && value !== null ? stringified(value) : String(value);
}

const quoted = (text: string): string => (/^[^\s"=]+$/.test(text) ? text : JSON.stringify(text));
