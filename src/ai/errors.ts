import type { ModelCallFailed, ModelFault } from "../agent/model-call.ts";
import { defined } from "../base/defined.ts";

/** The fields of the SDK's APICallError that are kept. Its request holds the whole prompt, and its headers may hold secrets. */
interface ApiFacts {
  readonly url?: string;
  readonly statusCode?: number;
  readonly responseBody?: string;
  readonly data?: unknown;
}

/** The statuses that the SDK itself repeats. */
const repeated: ReadonlySet<number> = new Set([408, 409, 429]);
/** Codes of Node and undici for connections that broke, or were never made. */
const broken = /^(ECONN|ENOTFOUND|ETIMEDOUT|EPIPE|EAI_AGAIN|UND_ERR)/;

export function faultOf(error: unknown): ModelFault {
  const { name, url, statusCode, responseBody, data, isRetryable, responseHeaders } = (error ?? {}) as ApiFacts & {
    readonly name?: unknown;
    readonly isRetryable?: unknown;
    readonly responseHeaders?: Readonly<Record<string, string>>;
  };
  const retryable = typeof isRetryable === "boolean" ? isRetryable : undefined;
  const byStatus = statusCode === undefined ? undefined : repeated.has(statusCode) || statusCode >= 500;
  return {
    retry: retryable ?? byStatus ?? isBroken(error),
    retryAfterMs: retryAfterMs(responseHeaders),
    facts: { name: String(name ?? "Error"), ...defined({ url, statusCode, responseBody, data }) },
  };
}

/** `fetch failed` has the reason as its cause. */
function isBroken(error: unknown): boolean {
  for (let link = error, depth = 0; link instanceof Error && depth < 4; link = link.cause, depth++) {
    const { code } = link as { code?: unknown };
    if ((typeof code === "string" && broken.test(code)) || link.message === "fetch failed") return true;
    if (link.message === "terminated") return true; // undici: the server has closed the stream
  }
  return false;
}

/** Longer waits than a day are a mistake of the server. */
const maxRetryAfterMs = 24 * 3_600_000;

/** `retry-after-ms` of some providers, or `retry-after` in seconds. A date is not read: clocks differ. */
function retryAfterMs(headers: Readonly<Record<string, string>> = {}): number | undefined {
  const find = (name: string): number => {
    const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
    return found === undefined ? Number.NaN : Number(found);
  };
  const ms = find("retry-after-ms");
  const wait = Number.isNaN(ms) ? find("retry-after") * 1_000 : ms;
  return wait > 0 ? Math.min(wait, maxRetryAfterMs) : undefined;
}

/** The marks by which the SDK recognises its errors, whichever copy of it made them. */
const marker = "vercel.ai.error";

/** The SDK's error again. It is not retryable: Tape has retried it already. */
export function revive({ message, facts }: ModelCallFailed): Error {
  const { name = "AI_APICallError", ...fields } = facts as ApiFacts & { readonly name?: string };
  const error = Object.assign(new Error(message), {
    ...fields,
    name,
    isRetryable: false,
    requestBodyValues: undefined,
  });
  if (!name.startsWith("AI_")) return error;
  for (const mark of [marker, `${marker}.${name}`]) {
    Object.defineProperty(error, Symbol.for(mark), { value: true, enumerable: false });
  }
  return error;
}
