import type { Log } from "../../base/log.ts";
import { isLoopbackAddress } from "../../base/loopback.ts";
import { errorFields } from "../../base/reason.ts";
import { TapeError } from "../../model/errors.ts";

/**
 * How the connection is protected: local (others cannot read it), TLS with or without a verified certificate, or plain.
 */
export type Transport = "local" | "tls" | "tls, not verified" | "plain";

interface Stream {
  readonly encrypted?: boolean;
  readonly authorized?: boolean;
  readonly remoteAddress?: string | undefined;
}

/**
 * Judged by the connection itself, not by its URL: names resolve, and the environment may set what the URL does not.
 */
export function transportOf(client: unknown): Transport {
  const { stream = {} } = (client as { readonly connection?: { readonly stream?: Stream } }).connection ?? {};
  if (stream.encrypted === true) return stream.authorized === true ? "tls" : "tls, not verified";
  // A Unix socket has no address.
  return stream.remoteAddress === undefined || isLoopbackAddress(stream.remoteAddress) ? "local" : "plain";
}

/** Warns if others can read or forge the traffic, unless the URL accepts it explicitly. */
export function warnOfTransport(transport: Transport, connectionString: string, log: Log): void {
  if (transport === "local" || transport === "tls") return;
  const { hostname, searchParams } = new URL(connectionString);
  if (["disable", "no-verify"].includes(searchParams.get("sslmode") ?? "")) return;
  const host = searchParams.get("host") ?? hostname;
  const message =
    transport === "plain"
      ? `the connection to ${host} is not encrypted: the network can read and change the password and all payloads`
      : `the connection to ${host} is encrypted, but the server's certificate was not checked`;
  log("warn", "store.plain", { host, ...errorFields(new TapeError("TAPE_STORE_PLAIN", message, { host })) });
}
