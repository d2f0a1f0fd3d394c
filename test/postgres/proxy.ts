import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { type Message, WireSplitter } from "./wire.ts";

type Match = RegExp | string;

export interface PostgresProxy {
  /** The target's url with the proxy in between. */
  readonly url: string;
  /**
   * Lets the next request with a matching message reach the server and be executed, drops the response and cuts the
   * connection: the client cannot know. Resolves once the server has finished the request.
   */
  cutAfterRequest(match: Match): Promise<void>;
  /** Cuts the connection before the next matching message, which the server never receives. Resolves once cut. */
  cutBeforeRequest(match: Match): Promise<void>;
  /** While on, nothing passes in either direction and nothing is lost; off passes everything on. */
  hang(on: boolean): void;
  /** Breaks every connection at once, whatever it carries; returns how many there were. */
  cut(): number;
  /** New connections go to this server; connections to the former one are cut. */
  retarget(url: string): void;
  /**
   * Calls back once, as soon as the server reports an open transaction on some connection, and before the client
   * receives it. `port` is the connection's port on the server. The returned function disarms it.
   */
  onTransaction(call: (port: number) => void): () => void;
  close(): Promise<void>;
}

interface Cut {
  when: "before" | "after";
  match: Match;
  bitten(): void;
  spared(): void;
}

/**
 * A TCP proxy that understands enough of the PostgreSQL protocol to lose exactly one response. A match sees the payload
 * of one message: the text of a simple query, or the Parse (SQL) and Bind (parameters) messages of an extended one.
 */
export async function startProxy(targetUrl: string): Promise<PostgresProxy> {
  let target = new URL(targetUrl);
  const cuts = new Set<Cut>();
  const links = new Set<Link>();
  let hung = false;
  let watcher: ((port: number) => void) | undefined;
  const inTransaction = (port: number): void => {
    const call = watcher;
    watcher = undefined;
    call?.(port);
  };

  const take = (message: Message): Cut | undefined => {
    const cut = [...cuts].find(({ match }) =>
      typeof match === "string"
        ? message.text.includes(match)
        : new RegExp(match, match.flags.replace(/[gy]/g, "")).test(message.text),
    );
    if (cut) cuts.delete(cut);
    return cut;
  };
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: target.hostname, port: Number(target.port || 5432), noDelay: true });
    const link = new Link(client, upstream, take, inTransaction);
    links.add(link);
    client.once("close", () => links.delete(link));
    link.hang(hung);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (!address || typeof address === "string") throw new Error("no port");
  const url = new URL(targetUrl);
  url.hostname = "127.0.0.1";
  url.port = String(address.port);

  const arm = (when: Cut["when"], match: Match): Promise<void> =>
    new Promise((resolve, reject) => {
      // A cut that never took effect has tested nothing.
      const spared = () => reject(new Error(`the proxy was closed before it could cut ${when} ${match}`));
      cuts.add({ when, match, bitten: resolve, spared });
    });

  return {
    url: url.href,
    cutAfterRequest: (match) => arm("after", match),
    cutBeforeRequest: (match) => arm("before", match),
    hang(on) {
      hung = on;
      for (const link of links) link.hang(on);
    },
    cut() {
      const broken = links.size;
      for (const link of links) link.destroy();
      return broken;
    },
    retarget(to) {
      target = new URL(to);
      for (const link of links) link.destroy();
    },
    onTransaction(call) {
      watcher = call;
      return () => {
        if (watcher === call) watcher = undefined;
      };
    },
    async close() {
      for (const cut of cuts) cut.spared();
      cuts.clear();
      for (const link of links) link.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** One client's connection and its counterpart to the server. */
class Link {
  readonly #client: Socket;
  readonly #upstream: Socket;
  readonly #take: (message: Message) => Cut | undefined;
  readonly #inTransaction: (port: number) => void;
  readonly #toServer = new WireSplitter("client");
  readonly #toClient = new WireSplitter("server");
  // With pipelining several requests are in flight; responses come in order, and each ends with ReadyForQuery. Counting
  // both shows which response belongs to the request that is to be lost.
  #requests = 0;
  #answered = 0;
  /** The cut that has taken a request, and that request's number. */
  #lost: { cut: Cut; request: number; complete: boolean } | undefined;

  constructor(
    client: Socket,
    upstream: Socket,
    take: (message: Message) => Cut | undefined,
    inTransaction: (port: number) => void,
  ) {
    this.#client = client;
    this.#upstream = upstream;
    this.#take = take;
    this.#inTransaction = inTransaction;
    client.on("data", (chunk: Buffer) => this.#fromClient(chunk));
    upstream.on("data", (chunk: Buffer) => this.#fromServer(chunk));
    for (const socket of [client, upstream]) {
      socket.on("error", () => this.destroy());
      socket.on("close", () => this.destroy());
    }
  }

  hang(on: boolean): void {
    for (const socket of [this.#client, this.#upstream]) on ? socket.pause() : socket.resume();
  }

  destroy(): void {
    this.#client.destroy();
    this.#upstream.destroy();
    this.#lost?.cut.bitten();
    this.#lost = undefined;
  }

  #fromClient(chunk: Buffer): void {
    for (const message of this.#toServer.push(chunk)) {
      if (this.#client.destroyed || this.#lost?.complete) return;
      if (!this.#lost) {
        const cut = this.#take(message);
        if (cut) this.#lost = { cut, request: this.#requests, complete: false };
        if (cut?.when === "before") {
          this.destroy();
          return;
        }
      }
      this.#upstream.write(message.bytes);
      // The server ends its response to startup, a simple query (Q) and Sync (S) with ReadyForQuery (Z). An extended
      // query commits only at its Sync, so the request is complete no earlier.
      if (message.type === "" || message.type === "Q" || message.type === "S") {
        this.#requests += 1;
        if (this.#lost) this.#lost.complete = true;
      }
    }
  }

  #fromServer(chunk: Buffer): void {
    for (const message of this.#toClient.push(chunk)) {
      if (this.#upstream.destroyed) return;
      const swallowed = this.#lost?.request === this.#answered;
      // The status byte of ReadyForQuery: T while a transaction is open.
      if (message.type === "Z" && message.text === "T") this.#inTransaction(this.#upstream.localPort ?? 0);
      if (!swallowed) this.#client.write(message.bytes);
      if (message.type === "Z") {
        this.#answered += 1;
        if (swallowed) this.destroy();
      }
    }
  }
}
