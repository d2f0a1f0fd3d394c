import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { TapeError } from "../../src/model/errors.ts";
import { type LambdaEvent, toLambda, toNode } from "../../src/push/adapters.ts";
import { type PushApp, type PushOptions, pushHandler } from "../../src/push/handler.ts";
import { sharedSecret, unverified } from "../../src/push/verify/secret.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { figure } from "../prometheus.ts";
import { heldLeases, type LogLine, onEachStore, pushStage } from "./stage.ts";

const hello = workflow("hello", async (tape, name: string) => tape.step("greet", () => `hello ${name}`));
const send = effect("send", async (what: string) => `sent ${what}`, { dispatch: "outbox", allowUnsafe: "a test" });
const order = workflow("order", async (tape, what: string) => tape.effect(send.with(what)));
const runner = createRunner({ workflows: [hello, order], effects: [send] });

const verify = unverified("a test");
const post = (body: unknown = {}, headers: Record<string, string> = {}): Request =>
  new Request("http://x.invalid/", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

const none = { found: 0, done: 0, failed: 0, lagMs: 0, more: false, surrendered: [] as readonly string[] };

/** An app whose rounds a test decides. */
function scripted(rounds: (name: string, call: number) => Partial<typeof none> | Error): PushApp & { calls: string[] } {
  const calls: string[] = [];
  return {
    calls,
    async react(name) {
      const round = rounds(name, calls.push(name));
      if (round instanceof Error) throw round;
      return { ...none, ...round };
    },
  };
}

it("counts requests by reactor and outcome, also those that wake none", async () => {
  const stage = await pushStage();
  const app = await stage.app(runner);
  const counted = Object.assign(
    scripted((name, call) => {
      if (name === "recovery") return { found: call === 1 ? 1 : 0 };
      return name === "timers" ? new TapeError("TAPE_STORE_UNREACHABLE", "no connection") : new Error("a mistake");
    }),
    { metrics: app.metrics },
  );
  const secret = "0123456789abcdef0123456789abcdef";
  const { log } = stage;
  const options = { verify: sharedSecret({ secrets: [secret] }), log };
  const handler = pushHandler(counted, { ...options, reactors: ["recovery", "outbox", "timers"] });
  const signed = { "x-tape-secret": secret };
  const statuses = [];
  for (const reactor of ["recovery", "outbox", "timers"]) {
    statuses.push((await handler(post({ reactor }, signed))).status);
  }
  statuses.push((await handler(post("{", signed))).status);
  statuses.push((await handler(post({}))).status);
  statuses.push((await handler(new Request("http://x.invalid/"))).status);
  expect(statuses).toEqual([204, 500, 503, 204, 401, 405]);
  const text = await app.metrics.text();
  const of = (reactor: string, outcome: string) =>
    figure(text, `tape_push_requests_total{reactor="${reactor}",outcome="${outcome}"}`);
  expect([of("recovery", "done"), of("outbox", "failed"), of("timers", "unavailable")]).toEqual([1, 1, 1]);
  expect([of("none", "unreadable"), of("none", "refused")]).toEqual([1, 2]);
  expect(text.match(/^tape_push_requests_total/gm)).toHaveLength(5);
  const short = pushHandler(
    Object.assign(
      scripted(() => ({ found: 1, surrendered: ["r"] })),
      { metrics: app.metrics },
    ),
    {
      ...{ reactors: ["recovery"], verify, log },
    },
  );
  await short(post());
  expect(figure(await app.metrics.text(), 'tape_push_requests_total{reactor="recovery",outcome="more"}')).toBe(1);
});

describe("pushHandler", () => {
  onEachStore("claims what is due until nothing is left, and holds no lease when it answers", async (stage) => {
    const app = await stage.app(runner);
    for (let k = 0; k < 5; k++) await app.start(hello, "Ada", { id: `h${k}` });
    await app.start(order, "tea", { id: "o" });
    const handler = pushHandler(app, { reactors: ["recovery", "outbox"], verify, batch: 2, log: stage.log });
    expect((await handler(post())).status).toBe(204);
    expect(await heldLeases(stage.store)).toEqual([]);
    expect((await handler(post({ reactor: "recovery" }))).status).toBe(204);
    for (let k = 0; k < 5; k++) expect(await (await app.run(`h${k}`)).result()).toBe("hello Ada");
    expect(await (await app.run("o")).result()).toBe("sent tea");
    expect(await heldLeases(stage.store)).toEqual([]);
    expect(stage.lines.filter(({ event }) => event.startsWith("push."))).toEqual([]);
  });

  it("an app whose handler drives runs has a process for them, and warns only of other workflows", async () => {
    const stage = await pushStage();
    const app = await stage.app(runner);
    const unserved = (): unknown[] => stage.lines.filter(({ event }) => event === "run.unserved");
    pushHandler(app, { reactors: ["outbox"], verify });
    await app.start(hello, "Ada");
    await expect.poll(() => unserved().length).toBe(1); // no handler drives runs yet
    pushHandler(app, { reactors: ["recovery"], verify });
    await app.start(order, "tea");
    const stray = workflow("stray", async () => "lost");
    await app.start(stray, undefined, { id: "s" });
    await expect.poll(() => unserved().length).toBe(2);
    expect(unserved().at(-1)).toMatchObject({ fields: { run: "s", workflow: "stray" } });
  });

  it("doubled, stale and foreign wake-ups do no harm", async () => {
    const stage = await pushStage();
    const app = await stage.app(runner);
    await app.start(hello, "Ada", { id: "h" });
    const handler = pushHandler(app, { reactors: ["recovery"], verify, log: stage.log });
    const all = await Promise.all([handler(post()), handler(post({ reactor: "timers" })), handler(post())]);
    expect(all.map(({ status }) => status)).toEqual([204, 204, 204]);
    expect(await (await app.run("h")).result()).toBe("hello Ada");
  });

  it("wakes the reactors that the request names, within its own", async () => {
    const app = scripted(() => none);
    const handler = pushHandler(app, { reactors: ["recovery", "outbox"], verify });
    await handler(post({ reactor: "outbox" }));
    await handler(post({ reactor: "timers" }));
    await handler(post({ message: { attributes: { tapewants: "outbox,recovery" } } }));
    expect(app.calls).toEqual(["outbox", "recovery", "outbox"]);
  });

  it("stops claiming when little time is left, and has the waker send one more", async () => {
    let now = 0;
    const clock = { ...systemClock, mono: () => now };
    const app = scripted(() => {
      now += 20_000;
      return { found: 10, done: 10, more: true };
    });
    const woken: string[] = [];
    const waker = {
      label: "test",
      wake: async (name: string, requests: number) => void woken.push(`${name} ${requests}`),
    };
    const handler = pushHandler(app, { reactors: ["outbox"], verify, within: "50s", waker, clock });
    expect((await handler(post())).status).toBe(204);
    expect(app.calls).toHaveLength(3); // at 0, 20 and 40 s; at 60 s less than 5 s are left
    expect(woken).toEqual(["outbox 1"]);
  });

  it("a waker that fails is logged, and the answer stays 204: an alarm finds what is due", async () => {
    const lines: LogLine[] = [];
    const app = scripted(() => ({ found: 1, failed: 1, surrendered: ["s" as never] }));
    const waker = { label: "test", wake: async () => Promise.reject(new Error("down")) };
    const log: PushOptions["log"] = (level, event, fields = {}) => void lines.push({ level, event, fields });
    expect((await pushHandler(app, { reactors: ["recovery"], verify, waker, log })(post())).status).toBe(204);
    expect(lines.map(({ event }) => event)).toEqual(["push.too_long", "push.wake_failed"]);
    expect(lines[0]!.fields).toMatchObject({ reactor: "recovery", runs: ["s"] });
  });

  it("503 with Retry-After while the store is away or the app stops; 500 for its own fault; never 429", async () => {
    const answer = async (error: Error) =>
      pushHandler(
        scripted(() => error),
        { reactors: ["recovery"], verify, log: () => {} },
      )(post());
    for (const code of ["TAPE_STORE_UNREACHABLE", "TAPE_STORE_CLOSED", "TAPE_OVERLOADED"] as const) {
      const response = await answer(new TapeError(code, "x"));
      expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
    }
    expect((await answer(new Error("a bug"))).status).toBe(500);
  });

  it("answers an unreadable wake-up with 204, wakes nothing, and logs it", async () => {
    const lines: LogLine[] = [];
    const app = scripted(() => none);
    const log: PushOptions["log"] = (level, event, fields = {}) => void lines.push({ level, event, fields });
    expect((await pushHandler(app, { reactors: ["recovery"], verify, log })(post("hello"))).status).toBe(204);
    expect(app.calls).toEqual([]);
    expect(lines).toMatchObject([{ level: "warn", event: "push.unreadable" }]);
  });

  it("refuses before it reads: method, size, sender; and logs nothing of the secret", async () => {
    const lines: LogLine[] = [];
    const app = scripted(() => none);
    const log: PushOptions["log"] = (level, event, fields = {}) => void lines.push({ level, event, fields });
    const secret = sharedSecret({ secrets: ["0123456789abcdef"] });
    const handler = pushHandler(app, { reactors: ["recovery"], verify: secret, log });
    expect((await handler(new Request("http://x.invalid/"))).status).toBe(405);
    expect((await handler(post(`"${"x".repeat(300_000)}"`))).status).toBe(413);
    const refused = await handler(post({}, { "x-tape-secret": "wrong-but-private" }));
    expect([refused.status, refused.headers.get("content-type")]).toEqual([401, "application/problem+json"]);
    expect(JSON.stringify([lines, await refused.json()])).not.toContain("wrong-but-private");
    expect(lines).toMatchObject([{ event: "push.refused", fields: { status: 401 } }]);
    expect(app.calls).toEqual([]);
  });

  it("503 if the sender cannot be verified now", async () => {
    const broken = { label: "test", check: async () => Promise.reject(new Error("no keys")) };
    const handler = pushHandler(
      scripted(() => none),
      { reactors: ["recovery"], verify: broken, log: () => {} },
    );
    expect((await handler(post())).status).toBe(503);
  });

  it("cannot be made without a check, reactors, or time for its effects", async () => {
    const app = scripted(() => none);
    expect(() => pushHandler(app, { reactors: ["recovery"] } as never)).toThrow("TAPE_UNVERIFIED");
    expect(() => pushHandler(app, { reactors: [], verify })).toThrow("TAPE_BAD_INPUT");
    expect(() => pushHandler(app, { reactors: ["recovery"], verify, bacth: 1 } as never)).toThrow("bacth");
    expect(() => pushHandler(app, { reactors: ["recovery"], verify, batch: 0 })).toThrow("batch");
    const slow = effect("slow", async () => 1, { timeout: "2m", allowUnsafe: "a test" });
    const real = await (await pushStage()).app(createRunner({ workflows: [], effects: [slow] }));
    expect(() => pushHandler(real, { reactors: ["outbox"], verify })).toThrow("TAPE_BAD_TIMING");
    expect(() => pushHandler(real, { reactors: ["outbox"], verify, within: "125s" })).not.toThrow();
  });
});

describe("adapters", () => {
  it("toNode serves it by Node's own server", async () => {
    const app = scripted(() => none);
    const server = createServer(toNode(pushHandler(app, { reactors: ["recovery"], verify, log: () => {} })));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    expect((await fetch(url, { method: "POST", body: '{"reactor":"recovery"}' })).status).toBe(204);
    expect(app.calls).toEqual(["recovery"]);
    expect((await fetch(url)).status).toBe(405);
    expect((await fetch(url, { method: "POST", body: "x".repeat(400_000) })).status).toBe(413);
  });

  it("toLambda serves it behind a function URL", async () => {
    const app = scripted(() => none);
    const lambda = toLambda(pushHandler(app, { reactors: ["recovery", "outbox"], verify, log: () => {} }));
    const event: LambdaEvent = {
      headers: { "content-type": "application/json" },
      body: Buffer.from('{"reactor":"outbox"}').toString("base64"),
      isBase64Encoded: true,
      requestContext: { http: { method: "POST" } },
    };
    expect(await lambda(event)).toMatchObject({ statusCode: 204, body: "" });
    expect(app.calls).toEqual(["outbox"]);
    expect(await lambda({ requestContext: { http: { method: "GET" } } })).toMatchObject({ statusCode: 405 });
  });
});
