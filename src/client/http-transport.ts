import type { LookupFunction, Socket } from "node:net";
import { promisify } from "node:util";
import type { Clock } from "../base/clock.ts";
import { loopbackAddresses } from "../base/loopback.ts";
import { network } from "../base/network.ts";
import { TapeError } from "../model/errors.ts";
import type { Transport, WireResponse } from "../protocol/transport.ts";
import type { Address } from "./address.ts";
import { HttpConnection, type RawResponse } from "./http-connection.ts";

/** Certificates of a TLS connection to a server. */
export interface TlsOptions {
  /** The only certificates to trust, as PEM. Default: those of the system. */
  readonly ca?: string;
  /** The client's own certificate, for servers that require one. */
  readonly cert?: string;
  /** The private key of that certificate, as PEM text. */
  readonly key?: string;
}

export interface HttpOptions {
  readonly address: Address;
  readonly clock: Clock;
  readonly tls?: TlsOptions;
  /** Limit for establishing the connection. */
  readonly connectMs?: number;
  /** From the request to the last byte of the response; for a stream, to its first byte. */
  readonly responseMs?: number;
  /** Whether large bodies are compressed. Default: only if the server is another machine. */
  readonly compress?: boolean;
}

/** A transport over persistent connections, and how to close them. */
export interface HttpTransport {
  readonly exchange: Transport;
  close(): void;
}

const defaultConnectMs = 5_000;
/** Longer than any transaction of a store, and longer than any wait that a route allows. */
const defaultResponseMs = 35_000;
/** Below this size compression costs more than it saves. */
const minCompressedBytes = 4 * 1024;
/** Larger than any page of any list; an endless response must not fill the memory. */
const maxResponseBytes = 512 * 1024 * 1024;

/** Connections that wait for their next request. */
const maxIdle = 256;
/** What Node's own client would refuse: control characters would end a header or the request line. */
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;
const requestPath = /^[\x21-\xff]+$/;

/** HTTP/1.1 over persistent connections. Throws {@link RequestNotSent} if certainly nothing was sent. */
export function httpExchange(options: HttpOptions): HttpTransport {
  const { address } = options;
  const compress = options.compress ?? !address.loopback;
  const pool = new ConnectionPool(options);
  const start = ` ${address.base}`;
  const always = [`host: ${hostOf(address)}`, "connection: keep-alive", ...(compress ? ["accept-encoding: gzip"] : [])];

  const exchange: Transport = async ({ method, url, headers, body, signal }) => {
    const zipped = compress && body !== undefined && body.length >= minCompressedBytes;
    const sent = zipped ? await promisify(network.zlib.gzip)(body) : body;
    const own = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    if (sent !== undefined) own.push(`content-length: ${sent.length}`);
    if (zipped) own.push("content-encoding: gzip");
    if (!requestPath.test(url) || !own.every((line) => headerValue.test(line)))
      throw new TapeError(
        "TAPE_BAD_INPUT",
        "a header or the path of the call has a character that HTTP does not allow",
      );
    const head = [`${method}${start}${url} HTTP/1.1`, ...always, ...own].join("\r\n");
    const read = await pool.take().exchange(`${head}\r\n\r\n`, sent, { bodiless: method === "HEAD", signal });
    return { status: read.status, headers: read.headers, body: await unpacked(read) };
  };
  return { exchange, close: () => pool.close() };
}

/** The connections to one server. The one used last is used next, so that surplus ones become idle and are closed. */
class ConnectionPool {
  readonly #options: HttpOptions;
  readonly #open = new Set<HttpConnection>();
  #idle: HttpConnection[] = [];

  constructor(options: HttpOptions) {
    this.#options = options;
  }

  take(): HttpConnection {
    for (let last = this.#idle.pop(); last !== undefined; last = this.#idle.pop()) {
      if (last.usable) return last;
      last.close();
    }
    const { address, clock, connectMs = defaultConnectMs, responseMs = defaultResponseMs } = this.#options;
    const connection = new HttpConnection(this.#connect(), {
      clock,
      event: address.secure ? "secureConnect" : "connect",
      connectMs,
      responseMs,
      maxResponseBytes,
      onIdle: (idle) => {
        if (this.#idle.length < maxIdle) this.#idle.push(idle);
        else idle.close();
      },
      onClosed: (closed) => {
        this.#open.delete(closed);
        this.#idle = this.#idle.filter((idle) => idle !== closed);
      },
    });
    this.#open.add(connection);
    return connection;
  }

  close(): void {
    for (const connection of this.#open) connection.close();
  }

  #connect(): Socket {
    const { address, tls = {} } = this.#options;
    const { host, port, secure, named } = address;
    // A token may go in clear text to this machine only. A name proves nothing, so it is resolved and must be loopback.
    const target = { host, port, noDelay: true, keepAlive: true, ...(named ? { lookup: loopbackLookup } : {}) };
    if (!secure) return network.net.connect(target);
    // TLS 1.2 at least, with name checks; no option weakens this.
    const strict = { minVersion: "TLSv1.2" as const, rejectUnauthorized: true, ALPNProtocols: ["http/1.1"] };
    const byName = network.net.isIP(host) === 0 ? { servername: host } : {};
    return network.tls.connect({ ...target, ...tls, ...byName, ...strict });
  }
}

function hostOf({ host, port, secure }: Address): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === (secure ? 443 : 80) ? name : `${name}:${port}`;
}

async function unpacked({ headers, body }: RawResponse): Promise<WireResponse["body"]> {
  if (!(body instanceof Uint8Array) || headers["content-encoding"] !== "gzip") return body;
  return promisify(network.zlib.gunzip)(body, { maxOutputLength: maxResponseBytes });
}

/** Replaces Node's lookup: refuses a name unless all its addresses are loopback addresses. */
const loopbackLookup: LookupFunction = (name, options, done) => {
  void loopbackAddresses(name).then((addresses) => {
    const all = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    const [first] = all;
    if (first === undefined)
      done(new Error(`${name} is not this machine, and a token is not sent there in clear text`), []);
    else if (options.all === true) done(null, all);
    else done(null, first.address, first.family);
  });
};
