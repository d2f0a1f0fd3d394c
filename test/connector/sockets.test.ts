import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { type HttpConnectorOptions, httpConnector } from "../../src/connector/http/connector.ts";
import { AckLost } from "../../src/sdk/outcomes.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { certificate } from "./certificate.ts";
import { answer, cameOf, context, json, serve, type Visit } from "./server.ts";

const bankAt = (port: number, more: Partial<HttpConnectorOptions<unknown, unknown>> = {}) =>
  httpConnector("bank", {
    url: `http://127.0.0.1:${port}/`,
    request: (args: unknown) => ({ url: "wires", body: args }),
    allow: ["127.0.0.1"],
    ...more,
  });

describe("a socket that breaks", () => {
  it("reports NotSent when the connection is refused", async () => {
    const server = await serve(() => {});
    const gone = server.port === 1 ? 2 : 1; // no server listens on these
    expect((await cameOf(bankAt(gone).dispatch({}, context()))).came).toBe("not_sent");
    expect(server.visits).toHaveLength(0);
  });

  const body = "x".repeat(300_000); // more than fits into the sockets' buffers at once
  const atHead = (then: (socket: Socket) => unknown) => async (visit: Visit) => {
    await visit.head();
    then(visit.socket);
  };
  const atEnd = (then: (socket: Socket) => unknown) => async (visit: Visit) => {
    await visit.whole();
    then(visit.socket);
  };
  const says = (text: string) => atEnd((socket) => socket.end(text));

  it.each([
    ["by reset", (socket: Socket) => socket.resetAndDestroy()],
    ["orderly", (socket: Socket) => socket.destroy()],
  ])("at once, %s: not sent only if nothing has come", async (_, close) => {
    const server = await serve(({ socket }) => void close(socket));
    const { came } = await cameOf(bankAt(server.port).dispatch({ body }, context()));
    expect(["not_sent", "unknown"]).toContain(came); // whether the end arrives before we send is a race
    if (came === "not_sent") expect(server.visits[0]!.text()).toBe("");
  });

  it.each([
    ["when the head has come", atHead((socket) => socket.destroy())],
    ["when all has come, by reset", atEnd((socket) => socket.resetAndDestroy())],
    ["when all has come, orderly", atEnd((socket) => socket.end())],
    ["in the status line", says("HTTP/1.1 20")],
    ["in the head of the answer", says("HTTP/1.1 200 OK\r\nx: ")],
    ["in the body", says(answer(200, "ab", { "content-length": "9" }))],
    ["in a chunk", says("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab")],
    ["with words that are not HTTP", says("220 mail ready\r\n")],
    ["with a head without end", says(answer(200, "", { x: "y".repeat(99_000) }))],
    ["with another protocol", says("HTTP/1.1 101 Go\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n")],
  ])("%s: reports AckLost", async (_, play) => {
    const server = await serve(play);
    const { came, error } = await cameOf(bankAt(server.port).dispatch({ body }, context()));
    expect(came).toBe("unknown");
    expect(error).toBeInstanceOf(AckLost);
    expect(server.visits).toHaveLength(1); // and no layer below retried it
  });

  it("accepts a refusal although its body is cut off", async () => {
    const server = await serve(async ({ socket, whole }) => {
      await whole();
      socket.end(answer(422, "not", { "content-length": "90" }));
    });
    const { came, message } = await cameOf(bankAt(server.port).dispatch({}, context()));
    expect(came).toBe("failure");
    expect(message).toContain("the response was cut off");
  });
});

describe("time limits", () => {
  it("report AckLost without a response in time, and close the connection", async () => {
    const clock = new ManualClock();
    const server = await serve(() => {});
    const came = cameOf(bankAt(server.port, { clock, responseTimeout: "20s" }).dispatch({}, context()));
    const visit = await server.visit(1);
    await visit.whole();
    await clock.elapse(20_000);
    expect(await came).toMatchObject({
      came: "unknown",
      message: expect.stringContaining("no response within 20000 ms"),
    });
    await visit.closed;
  });

  it("cut off a slow response", async () => {
    const clock = new ManualClock();
    const server = await serve(async ({ socket, whole }) => {
      await whole();
      socket.write(answer(200, "drop", { "content-length": "90" }));
    });
    const judged: number[] = [];
    const judge = ({ status }: { status: number }): undefined => void judged.push(status);
    const came = cameOf(bankAt(server.port, { clock, responseTimeout: "20s", judge }).dispatch({}, context()));
    const visit = await server.visit(1);
    await visit.whole();
    const left = visit.closed.then(() => true);
    while (!(await Promise.race([left, clock.elapse(20_000).then(() => false)])));
    expect((await came).came).toBe("unknown");
  });

  it("report NotSent without a connection in time", async () => {
    const clock = new ManualClock();
    const resolve = () => new Promise<never>(() => {});
    const url = "http://slow.test/";
    const unsubscribe = httpConnector("deaf", { request: () => ({ url }), resolve, clock, connectTimeout: "5s" });
    const came = cameOf(unsubscribe.dispatch({}, context()));
    await clock.elapse(5_000);
    expect(await came).toMatchObject({ came: "not_sent", message: expect.stringContaining("within 5000 ms") });
  });

  it("report NotSent without a TLS handshake in time", async () => {
    const clock = new ManualClock();
    const server = await serve(() => {});
    const url = `https://127.0.0.1:${server.port}/`;
    const came = cameOf(bankAt(server.port, { url, clock, connectTimeout: "5s" }).dispatch({}, context()));
    const visit = await server.visit(1);
    await clock.elapse(5_000);
    expect((await came).came).toBe("not_sent");
    await visit.closed;
    expect(visit.text()).not.toContain("wires");
  });

  it("report NotSent when cancelled before the connection, AckLost after it", async () => {
    const early = new AbortController();
    const server = await serve(() => {});
    early.abort(new Error("lost the lease"));
    expect((await cameOf(bankAt(server.port).dispatch({}, context({ abortSignal: early.signal })))).came).toBe(
      "not_sent",
    );
    const late = new AbortController();
    const before = server.visits.length;
    const came = cameOf(bankAt(server.port).dispatch({}, context({ abortSignal: late.signal })));
    const visit = await server.visit(before + 1);
    await visit.whole();
    late.abort(new Error("lost the lease"));
    expect(await came).toMatchObject({ came: "unknown", message: expect.stringContaining("lost the lease") });
    await visit.closed;
    expect(server.visits.slice(0, before).every(({ text }) => text() === "")).toBe(true);
  });
});

describe("response size", () => {
  it("stops reading an endless response at the limit", async () => {
    let sent = 0;
    const server = await serve(async ({ socket, whole, closed }) => {
      await whole();
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n");
      let open = true;
      void closed.then(() => {
        open = false;
      });
      const chunk = Buffer.alloc(65_536, "z");
      while (open) {
        sent += chunk.length;
        if (!socket.write(chunk))
          await Promise.race([closed, new Promise<void>((go) => void socket.once("drain", go))]);
      }
    });
    const { came, message } = await cameOf(bankAt(server.port, { maxResponseBytes: 100_000 }).dispatch({}, context()));
    expect([came, message.includes("longer than 100000 bytes")]).toEqual(["unknown", true]);
    await server.visits[0]!.closed;
    expect(sent).toBeLessThan(50_000_000); // what the sockets' buffers hold, not what it had to say
  });

  it("accepts a response of exactly the limit", async () => {
    const server = await serve(async ({ socket, whole }) => {
      await whole();
      socket.end(answer(200, "z".repeat(1_000)));
    });
    expect(await bankAt(server.port, { maxResponseBytes: 1_000 }).dispatch({}, context())).toHaveLength(1_000);
  });
});

describe("TLS", () => {
  const named = async () => [{ address: "127.0.0.1", family: 4 as const }];
  const secure = () =>
    serve(
      async ({ socket, whole }) => {
        await whole();
        socket.end(answer(200, ...json("signed")));
      },
      { tls: true },
    );

  it("checks the certificate against the name at the checked address", async () => {
    const server = await secure();
    const url = `https://bank.test:${server.port}/`;
    const bank = bankAt(server.port, { url, resolve: named, tls: { ca: certificate } });
    expect(await bank.dispatch({}, context())).toBe("signed");
  });

  it.each([
    ["of an unknown authority", "bank.test", {}],
    ["of another name", "other.test", { ca: certificate }],
  ])("a certificate %s: nothing was sent", async (_, host, tls) => {
    const server = await secure();
    const url = `https://${host}:${server.port}/`;
    expect((await cameOf(bankAt(server.port, { url, resolve: named, tls }).dispatch({}, context()))).came).toBe(
      "not_sent",
    );
    expect(server.visits.every(({ text }) => text() === "")).toBe(true);
  });
});
