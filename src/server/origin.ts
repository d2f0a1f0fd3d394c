import { isLoopbackAddress } from "../base/loopback.ts";
import { TapeError } from "../model/errors.ts";
import type { WireRequest } from "../protocol/transport.ts";

/** A Host header that a browser on this machine sends. The name was resolved and checked when the address was bound. */
const isLoopbackName = (host: string): boolean => host.toLowerCase() === "localhost" || isLoopbackAddress(host);

export interface Entry {
  readonly credentials: "required" | "none";
  /** The address under which browsers reach this server through a proxy: `https://tape.example`. */
  readonly origin?: string | undefined;
}

/** Headers that a proxy adds to forwarded requests. */
const proxyHeader = /^(forwarded|via|x-real-ip|x-forwarded-.*)$/;

/**
 * Keeps out foreign pages in a user's browser: neither by a request to this address (Origin), nor by a foreign name
 * that resolves to it (Host). The second matters where no credential is required. There a proxy is rejected too,
 * because every caller behind it would appear as this machine, and be admin.
 *
 * `page`: the origin of a page that may make this call.
 */
export function checkOrigin({ headers }: Pick<WireRequest, "headers">, entry: Entry, page?: string): void {
  const { host, origin } = headers;
  if (entry.credentials === "none") {
    if (host !== undefined && !isLoopbackName(host.replace(/:\d+$/, ""))) {
      throw forbidden("without credentials Host must be a loopback name", "host");
    }
    const proxied = Object.keys(headers).find((name) => proxyHeader.test(name));
    if (proxied !== undefined) throw forbidden("without credentials calls through a proxy are rejected", proxied);
  }
  if (page !== undefined && page === origin) return;
  const ownHosts = [(host ?? "").toLowerCase(), ...(entry.origin === undefined ? [] : [hostOf(entry.origin)])];
  if ((origin !== undefined && !ownHosts.includes(hostOf(origin))) || headers["sec-fetch-site"] === "cross-site") {
    throw forbidden("this call comes from a page of another origin", "origin");
  }
}

/** A link to the dashboard in a mail or a chat. The browser may open it: the page has no data yet. */
export const isNavigation = ({ headers }: Pick<WireRequest, "headers">): boolean =>
  headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document" && headers.origin === undefined;

function forbidden(message: string, field: string): TapeError {
  return new TapeError("TAPE_FORBIDDEN", message, { field });
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host.toLowerCase() : undefined;
}
