import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { get as getTls } from "node:https";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { openStore } from "../../src/host/open-store.ts";
import { type RunningServer, type ServeOptions, serve } from "../../src/host/serve.ts";
import { trustNone } from "../../src/server/address.ts";
import { Connections } from "../../src/server/connections.ts";
import { certificate, privateKey } from "../connector/certificate.ts";

const cleanup: (() => unknown)[] = [];
afterEach(async () => {
  for (const work of cleanup.splice(0).reverse()) await work();
});

async function serving(options: Partial<ServeOptions> = {}): Promise<RunningServer> {
  const one = await serve({ store: "memory:", port: 0, ...options });
  cleanup.push(() => one.stop(1_000));
  return one;
}

interface SocketReply {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

/** One call over a connection of this agent; an error carries the socket's message. */
async function post(url: string, body: unknown, agent: Agent): Promise<SocketReply> {
  const sent = request(url, { method: "POST", agent, headers: { "content-type": "application/json" } });
  sent.end(JSON.stringify(body));
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += chunk as string;
  return { status: answer.statusCode ?? 0, headers: answer.headers, text };
}

function agent(): Agent {
  const one = new Agent({ keepAlive: true, maxSockets: 1 });
  cleanup.push(() => one.destroy());
  return one;
}

/** What a raw request is answered, until the connection ends. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let received = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    received += chunk;
  });
  socket.on("error", () => {}); // a reset is an end too
  socket.write(text);
  await once(socket, "close");
  return received;
}

const nowhere = "host: localhost\r\ncontent-type: application/json\r\n";

describe("sockets", () => {
  it("carry many calls over one connection", async () => {
    const { url } = await serving();
    const one = agent();
    let connections = 0;
    one.on("free", () => connections++);
    for (let k = 0; k < 3; k++) {
      expect((await post(`${url}/v1/runs`, { id: `r${k}`, workflow: "w", input: 1 }, one)).status).toBe(200);
    }
    expect(Object.values(one.freeSockets).flat()).toHaveLength(1);
  });

  it("distinguish connections from one port to two addresses", () => {
    const options = { trusted: trustNone, log: silentLog, clock: systemClock };
    const connections = new Connections({ connections: 10, connectionsPerAddress: 10 }, options);
    const [first, second] = ["192.0.2.1", "192.0.2.2"].map((localAddress) =>
      Object.assign(new EventEmitter(), { remoteAddress: "203.0.113.9", remotePort: 4_711, localAddress }),
    ) as unknown as [Socket, Socket];
    connections.admit(first);
    connections.admit(second);
    first.emit("close");
    expect(connections.size).toBe(1); // the one that is left keeps its bounds
  });

  it("compress both directions", async () => {
    const { url } = await serving();
    const body = gzipSync(JSON.stringify({ id: "z", workflow: "w", input: "x".repeat(5_000) }));
    const headers = { "content-type": "application/json", "content-encoding": "gzip" };
    expect((await fetch(`${url}/v1/runs`, { method: "POST", headers, body })).status).toBe(200);
    const journal = await fetch(`${url}/v1/runs/z/journal`);
    expect(journal.headers.get("content-encoding")).toBe("gzip");
    expect(await journal.text()).toContain("x".repeat(5_000));
    const plain = await fetch(`${url}/v1/runs/z/journal`, { headers: { "accept-encoding": "identity, gzip;q=0" } });
    expect(plain.headers.get("content-encoding")).toBeNull();
    expect(await plain.text()).toContain("x".repeat(5_000));
  });

  it("refuse a body that is too large before reading it", async () => {
    const { port, server } = await serving({ limits: { bodyBytes: 1_000 } });
    const announced = await raw(port, `POST /v1/runs HTTP/1.1\r\n${nowhere}content-length: 1000000\r\n\r\n`);
    expect(announced).toMatch(/^HTTP\/1\.1 413 [\s\S]*TAPE_TOO_LARGE/);
    expect(announced).toMatch(/connection: close/i);
    const chunk = `800\r\n${"x".repeat(0x800)}\r\n`;
    const unending = await raw(port, `POST /v1/runs HTTP/1.1\r\n${nowhere}transfer-encoding: chunked\r\n\r\n${chunk}`);
    expect(unending).toMatch(/^HTTP\/1\.1 413 [\s\S]*TAPE_TOO_LARGE/);
    expect(server.service.callsInProgress).toBe(0);
  });

  it("time out without headers or a body", async () => {
    const { port } = await serving({ timeouts: { headersMs: 50, requestMs: 100 } });
    expect(await raw(port, "GET /livez HTTP/1.1\r\nhost: loc")).toMatch(/^HTTP\/1\.1 408/);
    expect(await raw(port, `POST /v1/runs HTTP/1.1\r\n${nowhere}content-length: 100\r\n\r\n{`)).toMatch(/40[08]/);
  });

  it("close an idle connection at the limit, never a busy one", async () => {
    const { port, url } = await serving({ limits: { connections: 1 } });
    const requested = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    const one = agent();
    expect((await post(`${url}/v1/runs`, { workflow: "w", input: 1 }, one)).status).toBe(200);
    const [idle] = Object.values(one.freeSockets).flat();
    const ended = once(idle!, "close");
    expect(await raw(port, requested)).toMatch(/^HTTP\/1\.1 200/);
    await ended;
    const stream = connect(port, "127.0.0.1");
    cleanup.push(() => stream.destroy());
    stream.write("GET /v1/feed/stream HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await once(stream, "readable");
    expect(await raw(port, requested)).toBe("");
  });

  it("limit connections per address, except for trusted proxies", async () => {
    const busy = async (port: number): Promise<void> => {
      const stream = connect(port, "127.0.0.1");
      cleanup.push(() => stream.destroy());
      stream.write("GET /v1/feed/stream HTTP/1.1\r\nhost: localhost\r\n\r\n");
      await once(stream, "readable");
    };
    const requested = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    const limits = { connectionsPerAddress: 2 };
    const { port } = await serving({ limits });
    await busy(port);
    await busy(port);
    expect(await raw(port, requested)).toBe("");
    const { port: behind } = await serving({ limits, trustedProxies: "127.0.0.0/8" });
    await busy(behind);
    await busy(behind);
    expect(await raw(behind, requested)).toMatch(/^HTTP\/1\.1 200/);
  });

  it("respond to HEAD like GET, without the body", async () => {
    const { url, port } = await serving();
    const requested = "HEAD /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    expect(await raw(port, requested)).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*content-length: 15\r\n[\s\S]*\r\n\r\n$/);
    const statuses = ["/", "/openapi.json", "/v1/runs", "/v1/feed/stream", "/v1/none"].map(
      async (path) => (await fetch(url + path, { method: "HEAD" })).status,
    );
    expect(await Promise.all(statuses)).toEqual([200, 200, 200, 404, 404]);
  });

  it("stop reading from the store while the client does not read", async () => {
    const store = await openStore("memory:");
    cleanup.push(() => store.close());
    const input = "x".repeat(100_000); // more than the sockets between them hold
    await store.intake.createRuns(
      "default",
      Array.from({ length: 600 }, (_one, k) => ({ id: `r${k}`, workflow: "w", input })),
    );
    let pages = 0;
    const feed = (...args: Parameters<typeof store.read.feed>) => {
      pages++;
      return store.read.feed(...args);
    };
    const { url, port } = await serving({ store: { ...store, read: { ...store.read, feed } } });
    const socket = connect(port, "127.0.0.1");
    cleanup.push(() => socket.destroy());
    socket.write("GET /v1/feed/stream HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await once(socket, "readable"); // the first bytes are here, and stay unread
    const one = agent();
    for (let k = 0; k < 50; k++) await post(`${url}/v1/store/agenda`, {}, one);
    expect(pages).toBeLessThan(5);
    let lines = 0;
    for await (const chunk of socket) {
      lines += (chunk as Buffer).toString("latin1").split('"kind":"run.created"').length - 1;
      if (lines >= 590) break; // one cut in two by a chunk's end is not counted
    }
    expect(pages).toBeGreaterThanOrEqual(6);
  });

  it("TLS", async () => {
    const { url, port } = await serving({ tls: { cert: certificate, key: privateKey } });
    expect(url).toMatch(/^https:/);
    const sent = getTls({
      port,
      host: "127.0.0.1",
      path: "/livez",
      servername: "bank.test",
      ca: certificate,
      headers: { host: "localhost" },
    });
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    expect(answer.statusCode).toBe(200);
    answer.resume();
    await once(answer, "end");
  });

  it("bind only loopback addresses without credentials", async () => {
    for (const host of ["0.0.0.0", "::", "192.168.7.7", "tape.example"]) {
      await expect(serve({ store: "memory:", port: 0, host })).rejects.toMatchObject({ code: "TAPE_SERVER_EXPOSED" });
    }
    const bound = await serving({
      ...{ host: "0.0.0.0", credentials: "required", bootstrapToken: `root.${"s".repeat(43)}`, plain: "accepted" },
    });
    expect((await fetch(`http://127.0.0.1:${bound.port}/v1/whoami`)).status).toBe(401);
  });

  it("report an address in use, and close the store", async () => {
    const { port } = await serving();
    await expect(serve({ store: "memory:", port })).rejects.toMatchObject({ code: "TAPE_BAD_CONFIG" });
  });
});

describe("drain", () => {
  it("finishes calls in flight, ends streams, and refuses late calls", async () => {
    const store = await openStore("memory:");
    cleanup.push(() => store.close());
    let go = (): void => {};
    const gate = new Promise<void>((done) => {
      go = done;
    });
    const intake = {
      ...store.intake,
      createRuns: async (...args: Parameters<typeof store.intake.createRuns>) => {
        await gate;
        return store.intake.createRuns(...args);
      },
    };
    const { url, server, stop } = await serving({ store: { ...store, intake } });
    const [busy, idle] = [agent(), agent()];
    await post(`${url}/v1/store/agenda`, {}, idle);
    const stream = await fetch(`${url}/v1/feed/stream`);
    const ended = stream.text();
    const underWay = post(`${url}/v1/runs`, { id: "late", workflow: "w", input: 1 }, busy);
    while (server.service.callsInProgress === 0) await new Promise((soon) => setImmediate(soon));
    const stopped = stop(10_000);
    expect(await ended).toBe("");
    const refused = await post(`${url}/v1/runs`, { id: "refused", workflow: "w", input: 1 }, idle);
    expect(refused).toMatchObject({ status: 503, headers: { connection: "close", "retry-after": "1" } });
    expect(JSON.parse(refused.text)).toMatchObject({ code: "TAPE_DRAINING" });
    await expect(post(`${url}/v1/store/agenda`, {}, agent())).rejects.toMatchObject({ code: "ECONNREFUSED" });
    go();
    expect(await underWay).toMatchObject({ status: 200, headers: { connection: "close" } });
    expect(await stopped).toBe(true);
    expect((await store.read.runs("default")).map(({ id }) => id)).toEqual(["late"]);
  });

  it("is visible in readyz on an open connection", async () => {
    const { url, server } = await serving();
    await server.drain(0);
    const ready = await fetch(`${url}/readyz`);
    expect({ status: ready.status, json: await ready.json() }).toEqual({ status: 503, json: { status: "draining" } });
    expect((await fetch(`${url}/livez`)).status).toBe(200);
  });

  it("exits 0 on SIGTERM under load, and loses no acknowledged run", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tape-drain-"));
    cleanup.push(() => rmSync(folder, { recursive: true }));
    const store = `sqlite:${join(folder, "t.db")}`;
    const bin = resolve(import.meta.dirname, "../../bin/durable-tape.js");
    const child = spawn(process.execPath, [bin, "serve", "--listen", "127.0.0.1:0", "--store", store], {
      cwd: folder,
      env: { ...process.env, TAPE_LOG_LEVEL: "info" },
    });
    cleanup.push(() => child.kill("SIGKILL"));
    const exit = once(child, "exit") as Promise<[number | null, string | null]>;
    let output = "";
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
    for await (const text of child.stdout.setEncoding("utf8")) {
      output += text as string;
      if (output.includes("credentials ")) break;
    }
    expect(output).toMatch(
      /^listening on http:\/\/127\.0\.0\.1:\d+\nstore +sqlite:.*t\.db\ncredentials +none: .* admin of tenant default\n/,
    );
    const url = /http:\S+/.exec(output)![0];
    const acknowledged: string[] = [];
    const answers = new Set<string>();
    let requested = false;
    const client = async (who: number): Promise<void> => {
      const one = agent();
      for (let k = 0; ; k++) {
        const id = `r-${who}-${k}`;
        try {
          const { status, text, headers } = await post(`${url}/v1/runs`, { id, workflow: "w", input: k }, one);
          if (status === 200) acknowledged.push(id);
          else {
            answers.add(`${status} ${(JSON.parse(text) as { code: string }).code} ${headers.connection}`);
            return;
          }
        } catch (error) {
          answers.add((error as { code?: string }).code ?? String(error));
          return;
        }
        if (acknowledged.length >= 200 && !requested) {
          requested = true;
          child.kill("SIGTERM");
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_one, who) => client(who)));
    expect(await exit, log).toEqual([0, null]);
    expect(log).toContain('"server.stopping"');
    expect(log).toContain('"drained":true');
    // Each was refused with a redirect to another replica, or could not connect; none lost its response.
    for (const answer of answers) expect(["503 TAPE_DRAINING close", "ECONNREFUSED"]).toContain(answer);
    const left = await openStore(store);
    cleanup.push(() => left.close());
    expect(acknowledged.length).toBeGreaterThanOrEqual(200);
    const found = new Set((await left.read.progress("default", acknowledged)).map(({ id }) => id));
    expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
  }, 120_000);
});
