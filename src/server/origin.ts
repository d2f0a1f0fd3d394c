import { TapeError } from "../model/errors.ts";
import type { WireRequest } from "../protocol/wire.ts";

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

/** Whether only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return loopback.test(host.includes(":") && !host.startsWith("[") ? `[${host}]` : host);
}

/**
 * A page of somebody else's in a browser of ours must not get in: not by sending to this address (Origin), nor by having
 * its own name resolve to it (Host). The second matters where no credential is asked for.
 */
export function checkOrigin({ headers }: Pick<WireRequest, "headers">, credentials: "required" | "none"): void {
  const { host, origin } = headers;
  if (credentials === "none" && host !== undefined && !isLoopback(host.replace(/:\d+$/, ""))) {
    throw new TapeError("TAPE_FORBIDDEN", "without credentials only a loopback name may stand in Host", {
      field: "host",
    });
  }
  const foreign = origin !== undefined && hostOf(origin) !== (host ?? "").toLowerCase();
  if (foreign || headers["sec-fetch-site"] === "cross-site") {
    throw new TapeError("TAPE_FORBIDDEN", "this call comes from a page of another origin", { field: "origin" });
  }
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host.toLowerCase() : undefined;
}
