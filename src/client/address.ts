import { isIP } from "node:net";
import { TapeError } from "../model/errors.ts";

/** Where a server is. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** This very machine: what is sent there leaves no trace on a network. */
  readonly loopback: boolean;
  /** Plain because its name says that it is this machine; whether it is shows when it is resolved. */
  readonly named: boolean;
  /** In front of every path; empty, or begins with a slash and does not end with one. */
  readonly base: string;
}

export interface AddressRules {
  /** A token will be sent. */
  readonly token: boolean;
  /** A token may travel unencrypted to another machine. */
  readonly allowPlain: boolean;
}

/** Reads `http://host:port` or `https://host`, and refuses to send a token in clear to another machine. */
export function addressOf(text: string, { token, allowPlain }: AddressRules): Address {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw bad("the address of a server is http://host:port or https://host");
  }
  const secure = url.protocol === "https:";
  if (!secure && url.protocol !== "http:")
    throw bad(`a server's address begins with http: or https:, not ${url.protocol}`);
  if (url.username !== "" || url.password !== "") throw bad("an address holds no credentials: give them as token");
  if (url.search !== "" || url.hash !== "") throw bad("an address ends with its path");
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const loopback = host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
  if (token && !secure && !loopback && !allowPlain) {
    throw bad(`a token is not sent to ${host} in clear: use https:, or allowPlain where the network itself is closed`);
  }
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  const named = host === "localhost" && !secure && !allowPlain;
  return { host, port, secure, loopback, named, base: url.pathname.replace(/\/+$/, "") };
}

const bad = (message: string): TapeError => new TapeError("TAPE_BAD_STORE_URL", message);
