import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { WireSplitter } from "./wire.ts";

export interface FakeServer {
  readonly port: number;
  /** Every statement that a client has sent. */
  readonly statements: string[];
  close(): Promise<void>;
}

export interface FakeOptions {
  /** What `select version()` returns. */
  readonly version: string;
  /** Rejects connections with our startup parameters, as a server does that does not know them. */
  readonly rejectsOptions?: boolean;
}

/**
 * A fake: it speaks just enough of PostgreSQL's protocol to introduce itself as another database. It shows what we do
 * with such an answer, and nothing about the real product.
 */
export async function startFakeServer({ version, rejectsOptions = false }: FakeOptions): Promise<FakeServer> {
  const statements: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    const client = new WireSplitter("client");
    socket.on("data", (chunk: Buffer) => {
      for (const { type, text } of client.push(chunk)) {
        if (type === "" && rejectsOptions && text.includes("options")) {
          socket.end(message("E", "SFATAL\0VFATAL\0C42704\0Munrecognized configuration parameter\0\0"));
        } else if (type === "") {
          socket.write(Buffer.concat([message("R", "\0\0\0\0"), message("S", "server_version\x0013.0\0"), ready]));
        } else if (type === "Q" || type === "P") {
          const sql = text.replaceAll("\0", "").trim();
          statements.push(sql);
          socket.write(answerTo(sql, version));
        }
      }
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as { port: number }).port,
    statements,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function message(type: string, body: string | Buffer): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body, "latin1") : body;
  const head = Buffer.alloc(5);
  head.write(type, "latin1");
  head.writeUInt32BE(bytes.length + 4, 1);
  return Buffer.concat([head, bytes]);
}

const ready = message("Z", "I");

function answerTo(sql: string, version: string): Buffer {
  if (!/version\(\)/.test(sql)) {
    return Buffer.concat([message("E", "SERROR\0VERROR\0C42883\0Munknown function\0\0"), ready]);
  }
  const column = Buffer.concat([Buffer.from("\0\x01version\0", "latin1"), Buffer.alloc(18)]);
  column.writeUInt32BE(25, column.length - 12); // type text
  const value = Buffer.from(version);
  const row = Buffer.alloc(6);
  row.writeUInt16BE(1, 0);
  row.writeUInt32BE(value.length, 2);
  return Buffer.concat([
    message("T", column),
    message("D", Buffer.concat([row, value])),
    message("C", "SELECT 1\0"),
    ready,
  ]);
}
