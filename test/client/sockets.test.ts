import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { addressOf } from "../../src/client/address.ts";
import { httpExchange } from "../../src/client/http-transport.ts";
import { openRemote } from "../../src/client/store.ts";
import { createRunner, isTapeError, Tape, workflow } from "../../src/exports/index.ts";
import { serve } from "../../src/host/serve.ts";
import { certificate, privateKey } from "../connector/certificate.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tape-sockets-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function startServer(store: string, port = 0): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const child = fork(join(import.meta.dirname, "server-process.ts"), [store, String(port)]);
  onTestFinished(async () => {
    if (child.exitCode === null && child.kill("SIGKILL")) await once(child, "exit");
  });
  const [url] = (await once(child, "message")) as [string];
  return { url, child };
}

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "answered",
    (error: unknown) => (isTapeError(error) ? error.code : error),
  );

it("finishes a run whose server is killed and restarted", async () => {
  const store = `sqlite:${join(folder, "killed.db")}`;
  const { url, child } = await startServer(store);
  let reached: () => void = () => {};
  const halfway = new Promise<void>((resolve) => {
    reached = resolve;
  });
  let goOn: () => void = () => {};
  const allowed = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const executed: string[] = [];
  const three = workflow("three", async (tape, _: null) => {
    await tape.step("one", () => void executed.push("one"));
    await tape.step("two", async () => {
      executed.push("two");
      reached();
      await allowed;
    });
    await tape.sleep("10ms"); // parks: another term, found through the server that came back
    return tape.step("three", () => executed.push("three"));
  });
  const app = await Tape.connect(url, { runner: createRunner({ workflows: [three] }) });
  onTestFinished(() => app.close());
  const run = await app.start(three, null, { id: "r" });
  const result = run.result();
  await halfway;
  child.kill("SIGKILL");
  await once(child, "exit");
  goOn(); // no server receives the record of step two
  await startServer(store, Number(new URL(url).port));
  expect(await result).toBe(3);
  expect(executed).toEqual(["one", "two", "three"]);
  const kinds: string[] = [];
  for await (const { kind } of app.journal("r")) kinds.push(kind);
  expect(kinds.filter((kind) => kind === "step.done")).toHaveLength(3);
  expect(kinds.at(-1)).toBe("run.ended");
}, 40_000);

it("tries the next replica when one is gone", async () => {
  const store = `sqlite:${join(folder, "replicas.db")}`;
  const one = await serve({ store, port: 0 });
  await using two = await serve({ store, port: 0 });
  const client = await openRemote([one.url, two.url]);
  onTestFinished(() => client.close());
  await client.intake.putValue("default", "k", 1, "must_create");
  await one.stop();
  expect((await client.intake.putValue("default", "k", 2, { version: 1 })).version).toBe(2);
  expect((await client.read.value("default", "k"))?.value).toBe(2);
});

it("loses nothing when a replica stops with SIGTERM under load", async () => {
  const store = `sqlite:${join(folder, "stopped.db")}`;
  const [first, second] = [await startServer(store), await startServer(store)];
  const app = await Tape.connect([first.url, second.url]);
  onTestFinished(() => app.close());
  const idle = workflow("idle", async (_tape, _: number) => 1);
  const acknowledged: string[] = [];
  let stopped: Promise<unknown[]> | undefined;
  const failures: unknown[] = [];
  await Promise.all(
    Array.from({ length: 32 }, async (_, lane) => {
      for (let k = 0; k < 25; k++) {
        const id = `run-${lane}-${k}`;
        await app.start(idle, k, { id }).then(
          () => acknowledged.push(id),
          (error: unknown) => failures.push(error),
        );
        if (acknowledged.length < 200 || stopped !== undefined) continue;
        stopped = once(first.child, "exit");
        first.child.kill("SIGTERM");
      }
    }),
  );
  expect(failures).toEqual([]);
  expect(acknowledged).toHaveLength(800);
  expect(await stopped).toEqual([0, null]);
  const found = await app.store.read.progress("default", acknowledged);
  expect(new Set(found.map(({ id }) => id))).toEqual(new Set(acknowledged));
});

describe("wake hints", () => {
  it("use one stream, which reopens and then rechecks everything", async () => {
    const store = `sqlite:${join(folder, "hints.db")}`;
    const first = await serve({ store, port: 0 });
    const client = await openRemote(first.url);
    onTestFinished(() => client.close());
    const received: string[] = [];
    let wakeUp: () => void = () => {};
    const unsubscribe = client.onWake((wake) => {
      received.push(wake.of);
      wakeUp();
    });
    const until = async (done: () => boolean): Promise<void> => {
      while (!done()) await new Promise<void>((resolve) => (wakeUp = resolve));
    };
    await until(() => received.includes("any")); // it stands
    await client.intake.putValue("default", "k", 1, "must_create");
    await until(() => received.includes("value"));
    const { port } = first;
    await first.stop();
    received.length = 0;
    await using _second = await serve({ store, port });
    await until(() => received.includes("any"));
    unsubscribe();
    expect(received[0]).toBe("any");
  });
});

describe("TLS", () => {
  it("trusts only the given certificates, and fails at once without sending", async () => {
    const tls = { cert: certificate, key: privateKey };
    await using serving = await serve({ store: "memory:", port: 0, tls, host: "127.0.0.1" });
    const address = addressOf(serving.url, { token: true, allowPlain: false });
    expect(address.secure).toBe(true);
    expect(await codeOf(openRemote(serving.url, { token: "a.b", retryForMs: 60_000 }))).toBe("TAPE_STORE_UNREACHABLE");
    // The certificate is bank.test's: trusted, it is still not this address's.
    expect(await codeOf(openRemote(serving.url, { tls: { ca: certificate }, retryForMs: 60_000 }))).toBe(
      "TAPE_STORE_UNREACHABLE",
    );
  });
});

describe("a body", () => {
  it("is compressed when large and the server is remote", async () => {
    let encoding: string | undefined;
    const server = createServer((request, response) => {
      encoding = request.headers["content-encoding"];
      response.setHeader("content-type", "application/json");
      request.resume().on("end", () => response.end("{}"));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const address = addressOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
      token: false,
      allowPlain: false,
    });
    const wire = httpExchange({ address, clock: systemClock, compress: true });
    const send = (length: number) =>
      wire.exchange({ method: "POST", url: "/", headers: {}, body: Buffer.from("x".repeat(length)) });
    await send(100);
    expect(encoding).toBeUndefined();
    await send(100_000);
    expect(encoding).toBe("gzip");
    wire.close();
  });

  it("of a real server arrives whole, compressed or not", async () => {
    await using serving = await serve({ store: "memory:", port: 0 });
    const address = addressOf(serving.url, { token: false, allowPlain: false });
    const text = "value ".repeat(20_000);
    for (const compress of [false, true]) {
      const wire = httpExchange({ address, clock: systemClock, compress });
      const client = await openRemote(serving.url, { exchange: wire.exchange });
      await client.intake.putValue("default", "k", text, "unconditional");
      expect((await client.read.value("default", "k"))?.value).toBe(text);
      await client.close();
      wire.close();
    }
  });
});
