import { isIP } from "node:net";
import { TapeError } from "../model/errors.ts";

/** The address of a server. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** Whether it is this machine, so that requests cross no network. */
  readonly loopback: boolean;
  /** Plain HTTP, because its name claims to be this machine; resolving it at connect time verifies that. */
  readonly named: boolean;
  /** The prefix of every path; empty, or begins with a slash and does not end with one. */
  readonly base: string;
}

export interface AddressRules {
  /** Whether a token will be sent. */
  readonly token: boolean;
  /** Whether a token may travel unencrypted to another machine. */
  readonly allowPlain: boolean;
}

/** Parses `http://host:port` or `https://host`, and refuses to send a token in clear text to another machine. */
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
  if (url.username !== "" || url.password !== "")
    throw bad("an address must not contain credentials: pass them as token");
  if (url.search !== "" || url.hash !== "") throw bad("an address must not have a query or a fragment");
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const loopback = host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
  if (token && !secure && !loopback && !allowPlain) {
    throw bad(`a token is not sent to ${host} in clear text: use https:, or allowPlain inside a closed network`);
  }
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  const named = host === "localhost" && !secure && !allowPlain;
  return { host, port, secure, loopback, named, base: url.pathname.replace(/\/+$/, "") };
}

const bad = (message: string): TapeError => new TapeError("TAPE_BAD_STORE_URL", message);
