import type { ModelCallFailed, ModelFault } from "../agent/model-call.ts";
import { defined } from "../base/defined.ts";

const repeated: ReadonlySet<number> = new Set([408, 409, 425, 429]);
/** Codes of Node and undici for connections that broke, or were never made. */
const broken = /^(ECONN|ENOTFOUND|ETIMEDOUT|EPIPE|EAI_AGAIN|UND_ERR)/;

interface ProviderError {
  readonly name?: string;
  readonly status?: unknown;
  readonly code?: unknown;
  readonly lc_error_code?: unknown;
  readonly headers?: unknown;
  readonly response?: { readonly status?: unknown; readonly headers?: unknown };
}

/** Providers' clients put the status into the error or into its response. */
export function faultOf(error: unknown): ModelFault {
  const { name = "Error", status, response, code, lc_error_code, headers } = (error ?? {}) as ProviderError;
  const found = Number(status ?? response?.status ?? Number.NaN);
  const isStatus = Number.isInteger(found);
  return {
    retry: isStatus ? repeated.has(found) || found >= 500 : isBroken(error),
    retryAfterMs: retryAfterMs(headers ?? response?.headers),
    facts: { name: String(name), ...defined({ status: isStatus ? found : undefined, code, lc_error_code }) },
  };
}

/** `fetch failed` has the reason as its cause. */
function isBroken(error: unknown): boolean {
  for (let link = error, depth = 0; link instanceof Error && depth < 4; link = link.cause, depth++) {
    const { code, name } = link as { code?: unknown; name: string };
    if ((typeof code === "string" && broken.test(code)) || /^(fetch failed|terminated)$/.test(link.message))
      return true;
    if (/^(APIConnectionError|APIConnectionTimeoutError)$/.test(name)) return true;
  }
  return false;
}

/** Longer waits than a day are a mistake of the server. */
const maxRetryAfterMs = 24 * 3_600_000;

/** `retry-after-ms`, or `retry-after` in seconds. A date is not read: clocks differ. */
function retryAfterMs(headers: unknown): number | undefined {
  const given = headers instanceof Headers ? headers : new Headers(pairs(headers));
  const ms = Number(given.get("retry-after-ms") ?? Number.NaN);
  const wait = Number.isNaN(ms) ? Number(given.get("retry-after") ?? Number.NaN) * 1_000 : ms;
  return wait > 0 ? Math.min(wait, maxRetryAfterMs) : undefined;
}

const pairs = (headers: unknown): [string, string][] =>
  Object.entries((headers ?? {}) as Record<string, unknown>).flatMap(([name, value]) =>
    typeof value === "string" && /^[\w-]+$/.test(name) ? [[name, value]] : [],
  );

/** The provider's error again, as far as the journal has it. Tape has retried it already. */
export const revive = ({ message, facts }: ModelCallFailed): Error => Object.assign(new Error(message), facts);
