import { isLoopbackAddress } from "../base/loopback.ts";
import { TapeError } from "../model/errors.ts";
import type { WireRequest } from "../protocol/transport.ts";

/** What a browser on this machine writes into Host; where the name leads was judged when the address was bound. */
const isLoopbackName = (host: string): boolean => host.toLowerCase() === "localhost" || isLoopbackAddress(host);

export interface Entry {
  readonly credentials: "required" | "none";
  /** Where browsers find this server, if a proxy in front of it has another name: `https://tape.example`. */
  readonly origin?: string | undefined;
}

/** What a proxy adds to the requests that it passes on. */
const proxyHeader = /^(forwarded|via|x-real-ip|x-forwarded-.*)$/;

/**
 * A page of somebody else's in a browser of ours must not get in: not by sending to this address (Origin), nor by having
 * its own name resolve to it (Host). The second matters where no credential is asked for; there nobody may come through
 * a proxy either, because everybody behind it would be this machine, and admin.
 */
export function checkOrigin({ headers }: Pick<WireRequest, "headers">, entry: Entry): void {
  const { host, origin } = headers;
  if (entry.credentials === "none") {
    if (host !== undefined && !isLoopbackName(host.replace(/:\d+$/, ""))) {
      throw forbidden("without credentials only a loopback name may stand in Host", "host");
    }
    const through = Object.keys(headers).find((name) => proxyHeader.test(name));
    if (through !== undefined) throw forbidden("without credentials nobody is let in through a proxy", through);
  }
  const ours = [(host ?? "").toLowerCase(), ...(entry.origin === undefined ? [] : [hostOf(entry.origin)])];
  if ((origin !== undefined && !ours.includes(hostOf(origin))) || headers["sec-fetch-site"] === "cross-site") {
    throw forbidden("this call comes from a page of another origin", "origin");
  }
}

/** A link to the dashboard in a mail or a chat: the browser goes there, and the page that is shown holds nothing yet. */
export const isNavigation = ({ headers }: Pick<WireRequest, "headers">): boolean =>
  headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document" && headers.origin === undefined;

function forbidden(message: string, field: string): TapeError {
  return new TapeError("TAPE_FORBIDDEN", message, { field });
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host.toLowerCase() : undefined;
}
