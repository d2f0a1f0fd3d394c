import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A TCP connection to a port of this machine that can be cut. */
export interface Link {
  readonly port: number;
  /** While cut, every connection is broken, and new ones are refused. */
  cut(on: boolean): void;
  close(): Promise<void>;
}

export async function startLink(target: number): Promise<Link> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.once("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    if (isCut) client.destroy();
    client.pipe(upstream).pipe(client);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const end = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as { port: number }).port,
    cut(on) {
      isCut = on;
      if (on) end();
    },
    async close() {
      end();
      server.close();
      await once(server, "close");
    },
  };
}
