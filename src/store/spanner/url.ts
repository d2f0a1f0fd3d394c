import { suggest } from "../../base/suggest.ts";
import { TapeError } from "../../model/errors.ts";

export interface SpannerSettings {
  readonly project: string;
  readonly instance: string;
  readonly database: string;
  /** How many statements and transactions run at once. */
  readonly sessions: number;
  /** How often other processes' commits are noticed, while something listens. */
  readonly watchMs: number;
  /** How long a call waits for its turn, and how long an aborted transaction is repeated. */
  readonly waitMs: number;
}

const parameters = {
  sessions: { usual: 32, min: 2, max: 400 },
  wait_ms: { usual: 30_000, min: 1_000, max: 900_000 },
  watch_ms: { usual: 250, min: 10, max: 60_000 },
};
const shape = "spanner://project/instance/database";

const bad = (message: string, key: string): TapeError => new TapeError("TAPE_BAD_STORE_URL", message, { key });

/** `spanner://project/instance/database?sessions=32&watch_ms=250` */
export function parseSpannerUrl(url: string): SpannerSettings {
  const [path = "", query = ""] = url.slice("spanner:".length).split("?", 2);
  const parts = /^\/\/([a-z][a-z0-9:.-]{0,62})\/([a-z][a-z0-9-]{0,62})\/([a-z][a-z0-9_-]{0,29})$/.exec(path);
  if (parts === null) throw bad(`a Spanner database is named by ${shape}`, "path");
  const [, project = "", instance = "", database = ""] = parts;
  const numbers: Record<string, number> = {};
  for (const [key, value] of new URLSearchParams(query)) {
    if (!Object.hasOwn(parameters, key)) {
      const near = suggest(key, Object.keys(parameters));
      throw bad(`unknown parameter ${key}${near === undefined ? "" : `; did you mean ${near}?`}`, key);
    }
    const { min, max } = parameters[key as keyof typeof parameters];
    if (!/^\d{1,6}$/.test(value) || Number(value) < min || Number(value) > max)
      throw bad(`${key} must be a whole number from ${min} to ${max}, not ${value}`, key);
    numbers[key] = Number(value);
  }
  const of = (key: keyof typeof parameters): number => numbers[key] ?? parameters[key].usual;
  return {
    ...{ project, instance, database },
    ...{ sessions: of("sessions"), waitMs: of("wait_ms"), watchMs: of("watch_ms") },
  };
}
