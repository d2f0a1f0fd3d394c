import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import type { Singleton } from "../../src/host/singleton/singleton.ts";
import { Tape } from "../../src/host/tape.ts";
import { toNode } from "../../src/push/adapters.ts";
import { announce } from "../../src/push/announce.ts";
import { pushHandler } from "../../src/push/handler.ts";
import type { Handler } from "../../src/push/request.ts";
import { webhookSignature } from "../../src/push/verify/webhook.ts";
import { webhookWaker } from "../../src/push/wakers/webhook.ts";
import { remoteReactor } from "../../src/reactor/remote.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { project, Sidecar } from "../cli/sidecar.ts";
import { heldLeases, type LogLine, onEachStore } from "./stage.ts";

const secret = `whsec_${Buffer.alloc(32, 5).toString("base64")}`;
const send = effect("send", async (what: string) => `sent ${what}`, { dispatch: "outbox", allowUnsafe: "a test" });
const order = workflow("order", async (tape, what: string) => {
  await tape.sleep(5);
  return tape.effect(send.with(what));
});
const runner = createRunner({ workflows: [order], effects: [send] });

async function served(handler: Handler): Promise<string> {
  const server = createServer(toNode(handler));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("announce", () => {
  onEachStore("wakes handlers by signed requests, through timers, outbox and recovery", async (stage) => {
    const app = await stage.app(runner);
    const reactors = ["recovery", "outbox", "timers"];
    const verify = webhookSignature({ secrets: [secret] });
    const url = await served(pushHandler(app, { reactors, verify, log: stage.log }));
    const waker = webhookWaker({ url: `${url}/{reactor}`, secrets: [secret], log: stage.log });
    const announcer = await announce(app, { reactors, waker, log: stage.log });
    const runs = [];
    for (const what of ["tea", "milk", "salt"]) runs.push(await app.start(order, what));
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(["sent tea", "sent milk", "sent salt"]);
    await announcer.stop();
    await waker.close!();
    expect(await heldLeases(stage.store)).toEqual([]);
    expect(stage.lines.filter(({ event }) => /^(push|waker)\./.test(event))).toEqual([]);
  });
});

describe("a process that only starts runs", () => {
  it("does not call them unserved while an announcer wakes handlers of another process", async () => {
    const clock = new VirtualTime();
    const store = await clock.during(openStore("memory:", { clock }));
    const lines: string[] = [];
    const log = (_: string, event: string): void => void lines.push(event);
    const open = (): Promise<Tape> =>
      clock.during(Tape.open({ store, runner: createRunner({ workflows: [] }), clock, log, work: false }));
    const [announcing, starter] = [await open(), await open()];
    const waker = { label: "test", wake: async () => {} };
    const woken = async (reactors: readonly string[]): Promise<Singleton> => {
      const announcer = await clock.during(announce(announcing, { reactors, waker, log, clock }));
      await clock.during(clock.sleep(62_000)); // its report, and the end of the pause after the last warning
      return announcer;
    };
    const warnings = (): number => lines.filter((event) => event === "run.unserved").length;
    const timers = await woken(["timers"]);
    await clock.during(starter.start(order, "tea"));
    await clock.during(clock.sleep(10));
    expect(warnings()).toBe(1);
    await clock.during(timers.stop());
    const all = await woken(["timers", "recovery"]);
    await clock.during(starter.start(order, "milk"));
    await clock.during(clock.sleep(10));
    expect(warnings()).toBe(1);
    await clock.during(all.stop());
    await clock.during(Promise.all([announcing.close(), starter.close()]));
    await clock.during(store.close());
  });
});

describe("tape-reactors --announce", () => {
  const yaml = (url: string) =>
    [
      "tape:",
      "  reactors: { recovery: { mode: push }, timers: { mode: push } }",
      `  push: { waker: { url: "${url}/{reactor}", secrets: ["${secret}"] } }`,
    ].join("\n");

  it("wakes the handlers of the reactors with mode: push, and stops on SIGTERM", async () => {
    const woken: string[] = [];
    const verify = webhookSignature({ secrets: [secret] });
    const counts = { found: 0, done: 0, failed: 0, lagMs: 0, more: false, surrendered: [] };
    const react = async (name: string) => {
      woken.push(name);
      return counts;
    };
    const url = await served(pushHandler({ react }, { reactors: ["recovery", "timers"], verify, log: () => {} }));
    const folder = project({ "tape.yaml": yaml(url) });
    const store = await openStore(`sqlite:${join(folder, "tape.db")}`);
    const app = await Tape.open({ store, runner, work: false, log: () => {} });
    onTestFinished(async () => {
      await app.close();
      await store.close();
    });
    await app.start(order, "tea");
    const env = { TAPE_STORE_URL: `sqlite:${join(folder, "tape.db")}`, TAPE_METRICS_LISTEN: "127.0.0.1:0" };
    const announcer = new Sidecar(folder, ["--announce"], env);
    await announcer.until(() => woken.includes("recovery"));
    expect(announcer.logged("announcer.standing_by")).toMatchObject({ reactors: ["recovery", "timers"] });
    const { url: probes } = await announcer.until(() => announcer.logged("metrics.listening"));
    expect((await fetch(new URL("/livez", String(probes)))).status).toBe(200);
    expect(await announcer.stop()).toBe(0);
  });

  it("needs a reactor with mode: push, an address and no --only", async () => {
    const fails = async (text: string, ...more: string[]): Promise<[number | null, string]> => {
      const process = new Sidecar(project({ "tape.yaml": text }), ["--announce", ...more]);
      return [await process.ended(), process.other.join("\n")];
    };
    const cases = await Promise.all([
      fails("tape: {}\n"),
      fails("tape: { reactors: { outbox: { mode: push } } }\n"),
      fails(yaml("https://x.example"), "--only", "recovery"),
      fails('tape: { reactors: { reap: { handler: "./a.ts#b", mode: push } } }\n'),
    ]);
    expect(cases.map(([code]) => code)).toEqual([1, 1, 2, 1]);
    const messages = [
      "no reactor has mode: push",
      "tape.push.waker.url is missing",
      "omit --only",
      "only for the built-in",
    ];
    for (const [k, message] of messages.entries()) expect(cases[k]![1]).toContain(message);
  });
});

describe("a remote reactor", () => {
  function scene(dueNow: () => number) {
    const woken: [number, number][] = [];
    let now = 0;
    const reactor = remoteReactor({
      ...{ name: "outbox", batch: 10, tenant: "default" },
      waker: { label: "test", wake: async (_, requests) => void woken.push([now, requests]) },
      store: { read: { due: async () => dueNow() } } as never,
      clock: { mono: () => now } as never,
    });
    return {
      woken,
      reactor,
      async at(ms: number) {
        now = ms;
        return reactor.runOnce(50);
      },
    };
  }

  it("sends a request for each batch that is due, ten at most, and nothing while nothing is due", async () => {
    let due = 0;
    const { woken, at } = scene(() => due);
    await at(0);
    due = 25;
    await at(1);
    due = 0;
    await at(5_000);
    due = 1_000;
    await at(10_000);
    expect(woken).toEqual([
      [1, 3],
      [10_000, 10],
    ]);
  });

  it("repeats a wake-up while work stays due: soon, then ever less often, once a minute at least", async () => {
    const { woken, at, reactor } = scene(() => 5);
    for (let ms = 0; ms <= 300_000; ms += 100) await at(ms);
    const times = woken.map(([ms]) => ms);
    expect(times.slice(0, 8)).toEqual([0, 100, 300, 700, 1_500, 3_100, 6_300, 12_700]);
    expect(Math.max(...times.map((ms, k) => ms - (times[k - 1] ?? 0)))).toBe(60_000);
    expect(reactor.dueInMs!()).toBeGreaterThan(0);
  });

  it("more work is announced at once, but with ten requests a second at most", async () => {
    let due = 5;
    const { woken, at } = scene(() => due);
    for (let ms = 0; ms < 3_000; ms += 10) {
      due++;
      await at(ms);
    }
    for (let from = 0; from < 2_000; from += 100) {
      const inOneSecond = woken.filter(([ms]) => ms >= from && ms < from + 1_000);
      expect(inOneSecond.reduce((sum, [, requests]) => sum + requests, 0)).toBeLessThanOrEqual(10);
    }
    expect(woken.length).toBeGreaterThan(10);
  });
});

describe("webhookWaker", () => {
  it("does not wait for the handler, bounds what is under way, and logs what fails", async () => {
    const lines: LogLine[] = [];
    let answer = (): void => {};
    let requests = 0;
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const url = await served(async () => {
      requests++;
      await held;
      return new Response(null, { status: 503 });
    });
    const log = (level: string, event: string, fields = {}): void => void lines.push({ level, event, fields });
    const waker = webhookWaker({ url, secrets: [secret], concurrency: 2, log });
    await waker.wake("outbox", 5);
    await waker.wake("outbox", 5);
    await expect.poll(() => requests).toBe(2);
    answer();
    await expect.poll(() => lines.length).toBe(2);
    expect(lines.map(({ event, fields }) => [event, fields.status])).toEqual([
      ["waker.refused", 503],
      ["waker.refused", 503],
    ]);
    const nowhere = webhookWaker({ url: "http://127.0.0.1:1/", secrets: [secret], log });
    await nowhere.wake("outbox", 1);
    await expect.poll(() => lines.at(-1)!.event).toBe("waker.failed");
    expect(JSON.stringify(lines)).not.toContain(secret.slice(6));
    await waker.close!();
  });

  it("needs an address and secrets of the right form", () => {
    expect(() => webhookWaker({ url: "ftp://x", secrets: [secret] })).toThrow("http or https");
    expect(() => webhookWaker({ url: "https://x", secrets: ["short"] })).toThrow("whsec_");
    expect(() => webhookWaker({ url: "https://x", secrets: [] })).toThrow("whsec_");
  });
});
