import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { limitKey, type ProxyTrust } from "./address.ts";
import { Bucket } from "./bucket.ts";

export interface ConnectionLimits {
  readonly connections: number;
  readonly connectionsPerAddress: number;
}

/** Requests that a connection may send ahead of its responses. Browsers and Tape's client send none. */
const maxPipelined = 32;

interface Connection {
  readonly name: string;
  readonly socket: Socket;
  /** Requests in progress, until their responses are completely written. */
  inProgress: number;
  /** Settles when the last of them is finished. */
  last: Promise<void>;
  /** The response that is being written. */
  response?: ServerResponse;
}

/**
 * The open connections. One address may have a part of them, unless it is a trusted proxy's, which serves many callers.
 * When all are taken, a new connection replaces the one that has been idle longest; it is dropped only if none is idle.
 * Requests on one connection are handled one after the other, each when the previous response is written. So responses
 * do not pile up for a caller that does not read.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #trusted: ProxyTrust;
  readonly #log: Log;
  readonly #clock: Clock;
  /** Ordered by the start of their idle time, the oldest first. */
  readonly #open = new Map<string, Connection>();
  readonly #from = new Map<string, number>();
  /** Limits log lines about dropped connections: dropped callers must not fill a disk. */
  readonly #lines: Bucket;
  #dropped = 0;

  constructor(limits: ConnectionLimits, { trusted, log, clock }: { trusted: ProxyTrust; log: Log; clock: Clock }) {
    this.#limits = limits;
    this.#trusted = trusted;
    this.#log = log;
    this.#clock = clock;
    this.#lines = new Bucket(1, 10, clock);
  }

  get size(): number {
    return this.#open.size;
  }

  /** Admits a new connection, or ends it. */
  admit(socket: Socket): void {
    const { remoteAddress = "" } = socket;
    const { connections, connectionsPerAddress } = this.#limits;
    const key = this.#trusted(remoteAddress) ? "" : limitKey(remoteAddress);
    const open = this.#from.get(key) ?? 0;
    const isOverLimit = key !== "" && open >= connectionsPerAddress;
    if (isOverLimit || (this.#open.size >= connections && !this.#makeRoom())) {
      this.#drop(socket, isOverLimit ? "connectionsPerAddress" : "connections");
      return;
    }
    const name = nameOf(socket);
    this.#from.set(key, open + 1);
    this.#open.set(name, { name, socket, inProgress: 0, last: Promise.resolve() });
    socket.once("close", () => {
      this.#open.delete(name);
      const left = (this.#from.get(key) ?? 1) - 1;
      if (left === 0) this.#from.delete(key);
      else this.#from.set(key, left);
    });
  }

  /** Whether a response has started on it and is not completely written. */
  isResponding(socket: Socket): boolean {
    const { response } = this.#open.get(nameOf(socket)) ?? {};
    return response?.headersSent === true && !response.writableFinished;
  }

  /** Handles a request when the responses of earlier requests on its connection are completely written. */
  inTurn(socket: Socket, response: ServerResponse, handle: () => Promise<void>): Promise<void> {
    const name = nameOf(socket);
    const connection = this.#open.get(name);
    if (connection === undefined) return handle();
    const work = (): Promise<void> => {
      connection.response = response;
      return handle();
    };
    if (connection.inProgress > maxPipelined) {
      socket.destroy();
      return Promise.resolve();
    }
    const ahead = connection.inProgress++;
    const done = (ahead === 0 ? work() : this.#after(connection, work)).finally(() => {
      if (--connection.inProgress > 0 || !this.#open.has(name)) return;
      this.#open.delete(name); // moved to the end: it became idle last
      this.#open.set(name, connection);
    });
    connection.last = done.catch(() => {});
    return done;
  }

  /** Other connections get a turn in between: a caller that pipelines is no faster than one that waits. */
  async #after({ socket, last }: Connection, work: () => Promise<void>): Promise<void> {
    await last;
    await new Promise<void>((next) => this.#clock.immediate(next));
    if (!socket.destroyed) await work();
  }

  #makeRoom(): boolean {
    for (const { name, socket, inProgress } of this.#open.values()) {
      if (inProgress > 0) continue;
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
    this.#log("warn", "server.connection_dropped", { limit, max: this.#limits[limit], dropped: this.#dropped });
    this.#dropped = 0;
  }
}

/**
 * Under TLS a request's socket and the connection's socket are different objects with the same two ends. The key has
 * both ends, because a caller may use one local port for connections to several addresses of this machine.
 */
const nameOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`;
