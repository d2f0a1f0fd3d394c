import { oneLine } from "../output.ts";

export interface LogLine {
  readonly at: string;
  readonly level: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Parses a line of a JSON log; undefined for other text, such as the user's own output. */
export function logLineOf(text: string): LogLine | undefined {
  if (!text.startsWith("{")) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { at, level, event, ...fields } = parsed as Record<string, unknown>;
  if (typeof at !== "string" || typeof level !== "string" || typeof event !== "string") return undefined;
  return { at, level, event, fields };
}

/** `12:00:01 warn run.stuck run=r-1`. */
export function printLogLine({ at, level, event, fields }: LogLine): string {
  const pairs = Object.entries(fields).map(([key, value]) => `${key}=${printedValue(value)}`);
  return oneLine([at.slice(11, 19), level, event, ...pairs].join(" "));
}

function printedValue(value: unknown): string {
  if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value) ?? "";
}
