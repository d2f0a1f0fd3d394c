import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { type Message, WireSplitter } from "./wire.ts";

export interface Pooler {
  /** The target's url with the pooler in between. */
  readonly url: string;
  /** How many transactions it has passed to a server connection. */
  transactions(): number;
  close(): Promise<void>;
}

export interface PoolerOptions {
  /** Number of server connections, for any number of clients. */
  readonly servers?: number;
  /** What happens to the startup parameter `options`: rejected as by PgBouncer, or silently dropped. */
  readonly options?: "refuse" | "forget";
}

/**
 * A transaction pooler: clients share a few server connections and get one for the length of a transaction. Between two
 * transactions the connection is reset, so that no session state (SET, LISTEN, named statements) survives.
 */
export async function startPooler(targetUrl: string, options: PoolerOptions = {}): Promise<Pooler> {
  const servers = new Servers(new URL(targetUrl), options.servers ?? 2);
  const clients = new Set<Client>();
  const server = createServer({ noDelay: true }, (socket) => {
    const client = new Client(socket, servers, options.options ?? "refuse");
    clients.add(client);
    socket.once("close", () => clients.delete(client));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (!address || typeof address === "string") throw new Error("no port");
  const url = new URL(targetUrl);
  url.hostname = "127.0.0.1";
  url.port = String(address.port);
  return {
    url: url.href,
    transactions: () => servers.lent,
    async close() {
      for (const client of clients) client.destroy();
      servers.close();
      server.close();
      await once(server, "close");
    },
  };
}

/** The server connections, each lent to one client at a time. */
class Servers {
  readonly #target: URL;
  readonly #maxServers: number;
  readonly #all = new Set<Server>();
  readonly #free: Server[] = [];
  readonly #waiting: ((server: Server) => void)[] = [];
  lent = 0;

  constructor(target: URL, maxServers: number) {
    this.#target = target;
    this.#maxServers = maxServers;
  }

  ask(give: (server: Server) => void): void {
    this.#waiting.push(give);
    this.#serve();
  }

  #serve(): void {
    while (this.#waiting.length > 0) {
      const free = this.#free.shift();
      if (free === undefined) {
        if (this.#all.size < this.#maxServers) this.#all.add(this.#open());
        return;
      }
      this.lent++;
      this.#waiting.shift()!(free);
    }
  }

  #open(): Server {
    const server: Server = new Server(this.#target, {
      ready: () => {
        this.#free.push(server);
        this.#serve();
      },
      gone: () => {
        this.#all.delete(server);
        const at = this.#free.indexOf(server);
        if (at >= 0) this.#free.splice(at, 1);
        this.#serve();
      },
    });
    return server;
  }

  close(): void {
    this.#waiting.length = 0;
    for (const server of this.#all) server.destroy();
  }
}

const typed = (type: string, payload: Buffer): Buffer => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(payload.length + 4);
  return Buffer.concat([Buffer.from(type, "latin1"), length, payload]);
};
const discard = typed("Q", Buffer.from("discard all\0"));

class Server {
  readonly #socket: Socket;
  readonly #splitter = new WireSplitter("server");
  readonly #ready: () => void;
  /** The client that uses it; undefined: none, while the connection starts or is reset. */
  #client: { receive(message: Message): void; destroy(): void } | undefined;

  constructor(target: URL, events: { ready: () => void; gone: () => void }) {
    this.#ready = events.ready;
    this.#socket = connect({ host: target.hostname, port: Number(target.port || 5432), noDelay: true });
    const pairs = ["user", decodeURIComponent(target.username), "database", target.pathname.slice(1), ""];
    this.#socket.write(typed("", Buffer.concat([Buffer.from([0, 3, 0, 0]), Buffer.from(`${pairs.join("\0")}\0`)])));
    this.#socket.on("data", (chunk: Buffer) => {
      for (const message of this.#splitter.push(chunk)) {
        if (this.#client !== undefined) this.#client.receive(message);
        else if (message.type === "Z") this.#ready();
      }
    });
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      this.#client?.destroy();
      events.gone();
    });
  }

  lendTo(client: { receive(message: Message): void; destroy(): void }): void {
    this.#client = client;
  }

  send(message: Message): void {
    this.#socket.write(message.bytes);
  }

  giveBack(): void {
    this.#client = undefined;
    this.#socket.write(discard);
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

class Client {
  readonly #socket: Socket;
  readonly #servers: Servers;
  readonly #options: "refuse" | "forget";
  readonly #splitter = new WireSplitter("client");
  #queue: Message[] = [];
  #server: Server | undefined;
  #asking = false;
  /** Requests whose ReadyForQuery has not arrived yet. */
  #open = 0;

  constructor(socket: Socket, servers: Servers, options: "refuse" | "forget") {
    this.#socket = socket;
    this.#servers = servers;
    this.#options = options;
    socket.on("data", (chunk: Buffer) => {
      for (const message of this.#splitter.push(chunk)) this.#receive(message);
    });
    socket.on("error", () => {});
    // A client that disconnects in a transaction takes the server connection with it: the transaction must roll back.
    socket.on("close", () => this.#server?.destroy());
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #receive(message: Message): void {
    if (message.type === "") this.#welcome(message);
    else if (message.type === "X") this.#socket.end();
    else {
      this.#queue.push(message);
      this.#forward();
    }
  }

  #welcome({ text }: Message): void {
    if (this.#options === "refuse" && text.split("\0").includes("options")) {
      const fields = "SFATAL\0VFATAL\0C08P01\0Munsupported startup parameter: options\0\0";
      this.#socket.end(typed("E", Buffer.from(fields)));
      return;
    }
    const key = Buffer.alloc(8);
    this.#socket.write(Buffer.concat([typed("R", Buffer.alloc(4)), typed("K", key), typed("Z", Buffer.from("I"))]));
  }

  #forward(): void {
    if (this.#server === undefined) {
      if (this.#asking) return;
      this.#asking = true;
      this.#servers.ask((server) => this.#serve(server));
      return;
    }
    for (const message of this.#queue.splice(0)) {
      if (message.type === "Q" || message.type === "S") this.#open++;
      this.#server.send(message);
    }
  }

  #serve(server: Server): void {
    this.#asking = false;
    if (this.#socket.destroyed) {
      server.giveBack();
      return;
    }
    this.#server = server;
    const receive = (message: Message): void => {
      this.#socket.write(message.bytes);
      if (message.type !== "Z" || --this.#open > 0 || !message.text.startsWith("I")) return;
      this.#server = undefined; // the transaction is over
      server.giveBack();
      if (this.#queue.length > 0) this.#forward();
    };
    server.lendTo({ receive, destroy: () => this.destroy() });
    this.#forward();
  }
}
