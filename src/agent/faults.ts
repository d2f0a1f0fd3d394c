import { defined } from "../base/defined.ts";
import type { ModelFault } from "./model-call.ts";

/** Statuses after which the same request may succeed, besides those from 500 on. */
const repeated: ReadonlySet<number> = new Set([408, 409, 429]);
/** Codes of Node and undici for connections that broke, or were never made. */
const broken = /^(ECONN|ENOTFOUND|ETIMEDOUT|EPIPE|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR)/;
/** How clients of providers name the same. */
const brokenNames: ReadonlySet<unknown> = new Set(["APIConnectionError", "APIConnectionTimeoutError", "FetchError"]);
/** Longer waits than a day are a mistake of the server. */
const maxRetryAfterMs = 24 * 3_600_000;
const maxCauses = 4;

/** What is known of an error of a provider's client: its fields are read wherever such clients have them. */
export function providerFault(error: unknown, facts: Readonly<Record<string, unknown>> = {}): ModelFault {
  const status = found(error, ({ status, statusCode }) => [status, statusCode].find((one) => typeof one === "number"));
  const headers = found(error, ({ headers, responseHeaders }) => headers ?? responseHeaders);
  const byStatus = status === undefined ? undefined : repeated.has(status) || status >= 500;
  const { name } = (error ?? {}) as { readonly name?: unknown };
  return {
    retry: byStatus ?? isBroken(error),
    retryAfterMs: retryAfterMs(headers),
    facts: { name: typeof name === "string" ? name : "Error", ...defined({ status }), ...facts },
  };
}

/** The first link of the chain of causes that has it. */
function found<T>(error: unknown, pick: (link: Record<string, unknown>) => T): T | undefined {
  for (let link = error, depth = 0; link instanceof Error && depth < maxCauses; link = link.cause, depth++) {
    const value = pick(link as unknown as Record<string, unknown>);
    if (value !== undefined) return value;
  }
  return undefined;
}

const isBroken = (error: unknown): boolean =>
  found(error, ({ name, code, message }) => {
    if (brokenNames.has(name) || (typeof code === "string" && broken.test(code))) return true;
    // undici: it was not sent, or the server has closed the stream
    return message === "fetch failed" || message === "terminated" || undefined;
  }) === true;

/** `retry-after-ms` of some providers, or `retry-after` in seconds. A date is not read: clocks differ. */
function retryAfterMs(headers: unknown): number | undefined {
  const all = headers instanceof Headers ? Object.fromEntries(headers) : ((headers ?? {}) as Record<string, unknown>);
  const numberIn = (name: string): number =>
    Number(Object.entries(all).find(([key]) => key.toLowerCase() === name)?.[1] ?? Number.NaN);
  const ms = numberIn("retry-after-ms");
  const wait = Number.isNaN(ms) ? numberIn("retry-after") * 1_000 : ms;
  return wait > 0 ? Math.min(wait, maxRetryAfterMs) : undefined;
}
