import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { limitKey, type Trusted } from "./address.ts";
import { Bucket } from "./bucket.ts";

export interface ConnectionLimits {
  readonly connections: number;
  readonly connectionsPerAddress: number;
}

/** Requests that a connection may send ahead of its answers: browsers and our client send none. */
const maxPipelined = 32;

interface Connection {
  readonly name: string;
  readonly socket: Socket;
  /** Requests that have begun and are not answered to their end. */
  underWay: number;
  /** Settles when the last of them is. */
  last: Promise<void>;
  /** The answer whose turn it is. */
  response?: ServerResponse;
}

/**
 * Who is connected. One address holds a part of all connections, unless it is a trusted proxy's, which speaks for many.
 * When all are taken a new one takes the place of the one that has been idle for longest; only where none is idle it is
 * turned away. On one connection the requests are worked on one after the other, each when the answer before it is
 * written: a caller that does not read makes nobody collect answers for it.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #trusted: Trusted;
  readonly #log: Log;
  readonly #clock: Clock;
  /** Those that were idle first come first. */
  readonly #open = new Map<string, Connection>();
  readonly #from = new Map<string, number>();
  /** Lines about dropped connections: whoever is turned away must not fill a disk. */
  readonly #lines: Bucket;
  #dropped = 0;

  constructor(limits: ConnectionLimits, { trusted, log, clock }: { trusted: Trusted; log: Log; clock: Clock }) {
    this.#limits = limits;
    this.#trusted = trusted;
    this.#log = log;
    this.#clock = clock;
    this.#lines = new Bucket(1, 10, clock);
  }

  get size(): number {
    return this.#open.size;
  }

  /** Takes a new connection in, or ends it. */
  admit(socket: Socket): void {
    const { remoteAddress = "" } = socket;
    const { connections, connectionsPerAddress } = this.#limits;
    const key = this.#trusted(remoteAddress) ? "" : limitKey(remoteAddress);
    const mine = this.#from.get(key) ?? 0;
    const many = key !== "" && mine >= connectionsPerAddress;
    if (many || (this.#open.size >= connections && !this.#makeRoom())) {
      this.#drop(socket, many ? "connectionsPerAddress" : "connections");
      return;
    }
    const name = nameOf(socket);
    this.#from.set(key, mine + 1);
    this.#open.set(name, { name, socket, underWay: 0, last: Promise.resolve() });
    socket.once("close", () => {
      this.#open.delete(name);
      const left = (this.#from.get(key) ?? 1) - 1;
      if (left === 0) this.#from.delete(key);
      else this.#from.set(key, left);
    });
  }

  /** Whether an answer has begun on it and is not written to its end. */
  answering(socket: Socket): boolean {
    const { response } = this.#open.get(nameOf(socket)) ?? {};
    return response?.headersSent === true && !response.writableFinished;
  }

  /** Works on a request when those before it on its connection are answered to their end. */
  inTurn(socket: Socket, response: ServerResponse, carry: () => Promise<void>): Promise<void> {
    const name = nameOf(socket);
    const connection = this.#open.get(name);
    if (connection === undefined) return carry();
    const work = (): Promise<void> => {
      connection.response = response;
      return carry();
    };
    if (connection.underWay > maxPipelined) {
      socket.destroy();
      return Promise.resolve();
    }
    const ahead = connection.underWay++;
    const done = (ahead === 0 ? work() : this.#after(connection, work)).finally(() => {
      if (--connection.underWay > 0 || !this.#open.has(name)) return;
      this.#open.delete(name); // to the end: it became idle last
      this.#open.set(name, connection);
    });
    connection.last = done.catch(() => {});
    return done;
  }

  /** Others get their turn in between: a caller that sends ahead is no faster than one that waits. */
  async #after({ socket, last }: Connection, work: () => Promise<void>): Promise<void> {
    await last;
    await new Promise<void>((next) => this.#clock.immediate(next));
    if (!socket.destroyed) await work();
  }

  #makeRoom(): boolean {
    for (const { name, socket, underWay } of this.#open.values()) {
      if (underWay > 0) continue;
      this.#open.delete(name);
      socket.destroy();
      return true;
    }
    return false;
  }

  #drop(socket: Socket, limit: keyof ConnectionLimits): void {
    socket.destroy();
    this.#dropped++;
    if (!this.#lines.tryTake()) return;
    this.#log("warn", "server.connection_dropped", { limit, most: this.#limits[limit], dropped: this.#dropped });
    this.#dropped = 0;
  }
}

/**
 * Under TLS a request's socket is another object than the connection's, with the same two ends. Both ends: a caller may
 * use one port of its own for connections to several addresses of this machine.
 */
const nameOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`;
