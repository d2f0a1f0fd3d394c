import { describe, expect, it } from "vitest";
import { functionConnector } from "../../src/connector/function.ts";
import { httpConnector } from "../../src/connector/http/connector.ts";
import { wireText } from "../../src/connector/http/request.ts";
import { Tape } from "../../src/host/tape.ts";
import { compensation } from "../../src/reactor/compensation.ts";
import { outbox } from "../../src/reactor/outbox.ts";
import { reconciler } from "../../src/reactor/reconciler.ts";
import type { Connector } from "../../src/sdk/connector.ts";
import { effect } from "../../src/sdk/effect.ts";
import { AckLost, DefiniteFailure, NotSent, outcome, settlesEarlierAttempts } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { Holder, hold } from "../../testkit/conformance/holder.ts";
import { granting, setStage, story, tenant, waiting } from "../reactor/stage.ts";
import { answer, context, json, serve } from "./server.ts";

const none = { found: 0, done: 0, failed: 0, lagMs: 0 };
const wire = effect<unknown, unknown>("wire", { connector: "bank", businessKey: () => "invoice", settleDelay: 0 });
const ready = (...connectors: Connector[]) => ({
  runner: createRunner({ workflows: [], effects: [wire], connectors }),
});

describe("an effect with a connector", () => {
  it("is dispatched, observed when UNKNOWN, and compensated when the run fails", async () => {
    const seen: string[] = [];
    const bank = functionConnector("bank", {
      dispatch: (args: { n: number }, fx) => {
        seen.push(`dispatch ${fx.effect} ${args.n} ${fx.key} ${typeof fx.token} ${fx.businessKey}`);
        if (args.n === 1) throw new AckLost();
        return args.n;
      },
      observe: (args, fx) => {
        seen.push(`observe ${fx.effect} ${args.n}`);
        return outcome.confirmed(args.n);
      },
      compensate: (args, result, fx) => void seen.push(`compensate ${fx.effect} ${args.n} ${result} ${fx.key}`),
    });
    const send = effect<{ n: number }, number>("send", { connector: "bank", businessKey: ({ n }) => `n${n}` });
    const flow = workflow("flow", async (tape) => {
      await tape.effect(send.with({ n: 1 }));
      await send({ n: 2 });
      throw new Error("and now this");
    });
    const runner = createRunner({ workflows: [flow], effects: [send], connectors: [bank] });
    await using app = await Tape.open({ store: "memory:", runner });
    const run = await app.start(flow, undefined, { id: "r" });
    await expect(run.result()).rejects.toThrow("COMPENSATED");
    expect(seen).toEqual([
      "dispatch send 1 r:0 bigint n1",
      "observe send 1",
      "dispatch send 2 r:1 bigint n2",
      "compensate send 2 2 r:1:compensation",
      "compensate send 1 1 r:0:compensation",
    ]);
    expect(await app.effects.list({ run: "r" })).toMatchObject([
      { connector: "bank", dispatch: "outbox", reason: "observed" },
      { connector: "bank", dispatch: "outbox", reason: "returned" },
    ]);
  });

  it("sends key and token as headers for any run id, and requests cannot set them", async () => {
    const server = await serve(async ({ socket, whole }) => {
      await whole();
      socket.end(answer(200, ...json({ id: 9 })));
    });
    const url = `http://127.0.0.1:${server.port}/v1/`;
    const bank = httpConnector("bank", {
      url,
      allow: ["127.0.0.1"],
      headers: { Authorization: "Bearer x" },
      request: (args: unknown, fx) => ({
        url: `wires?of=${fx.effect}`,
        body: args,
        headers: { "X-Attempt": String(fx.attempt) },
      }),
      observe: { request: () => ({ url: "x" }), read: () => outcome.absent() },
    });
    const send = effect<unknown, { id: number }>("send", { connector: "bank", businessKey: () => "b" });
    const flow = workflow("flow", (tape) => tape.effect(send.with({ sum: 1, to: "Zoë" })));
    const runner = createRunner({ workflows: [flow], effects: [send], connectors: [bank] });
    await using app = await Tape.open({ store: "memory:", runner });
    const id = "über 100%/\u{1F4B8}";
    expect(await (await app.start(flow, undefined, { id })).result()).toEqual({ id: 9 });
    const text = Buffer.from(server.visits[0]!.text(), "latin1").toString();
    const [effectRow] = await app.effects.list({ run: id });
    expect(text).toMatch(/^POST \/v1\/wires\?of=send HTTP\/1\.1\r\n/);
    expect(text).toContain(`\r\nidempotency-key: ${wireText(`${id}:0`)}\r\n`);
    expect(decodeURIComponent(wireText(`${id}:0`))).toBe(`${id}:0`);
    expect(text).toContain(`\r\ntape-fencing-token: ${effectRow!.attemptToken}\r\n`);
    expect(text).toContain("\r\nauthorization: Bearer x\r\n");
    expect(text).toContain("\r\nx-attempt: 1\r\n");
    expect(text).toMatch(/\r\n\r\n\{"sum":1,"to":"Zoë"\}$/);
    for (const name of ["Idempotency-Key", "tape-fencing-token", "Host", "Content-Length", "Transfer-Encoding"]) {
      const rude = httpConnector("rude", { url, request: () => ({ url: "x", headers: { [name]: "1" } }) });
      await expect(rude.dispatch({}, context())).rejects.toThrow("is set by the connector");
    }
    expect(server.visits).toHaveLength(1);
  });
});

describe("a process without the connector", () => {
  const bank = (seen: string[]) =>
    functionConnector("bank", {
      dispatch: () => void seen.push("dispatch"),
      observe: () => outcome.confirmed("found"),
      compensate: () => void seen.push("compensate"),
    });

  it("parks the effect, names what is missing, and resumes where the connector is", async () => {
    const { store, replica, clock } = await setStage();
    const run = await waiting(store, "non_idempotent", { connector: "bank" });
    const { item } = await run.effect(0);
    const without = { ...replica(), ...ready() };
    expect(await outbox(without).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await outbox(without).runOnce(10)).toEqual(none);
    expect(await run.effect(0)).toMatchObject({ status: "PENDING", attempt: 0 });
    expect(without.logged).toContain("reactor.no_handler");
    const last = (await store.read.journal(tenant, { journal: item! })).at(-1);
    expect(last).toMatchObject({
      kind: "term.ended",
      data: { nextReactor: "outbox", waitingFor: ["a process that has connector bank and effect wire"] },
    });
    await clock.elapse(1_001);
    const seen: string[] = [];
    await outbox({ ...replica(), ...ready(bank(seen)) }).runOnce(10);
    expect(seen).toEqual(["dispatch"]);
    expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED" });
  });

  it("parks an UNKNOWN effect despite evidence, since only its connector can compensate", async () => {
    const { store, replica, clock } = await setStage();
    const run = await waiting(store, "non_idempotent", { connector: "bank" });
    const silent = functionConnector("bank", {
      dispatch: () => Promise.reject(new AckLost()),
      observe: () => outcome.inconclusive("later"),
    });
    const granted = granting(store);
    await outbox({ ...replica({ store: granted.store }), ...ready(silent) }).runOnce(10);
    const { item } = await run.effect(0);
    const sender = new Holder(store, granted.terms.at(-1)!, run.id);
    await store.intake.leaveEvidence(tenant, sender.attempt(0), { happened: true, value: "receipt" });
    const without = { ...replica(), ...ready() };
    expect(await reconciler(without).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await run.effect(0)).toMatchObject({ status: "UNKNOWN" });
    const last = (await store.read.journal(tenant, { journal: item! })).at(-1);
    expect(last?.data).toMatchObject({
      nextReactor: "reconciler",
      waitingFor: ["a process that has connector bank and effect wire"],
    });
    await clock.elapse(2_001);
    await reconciler({ ...replica(), ...ready(bank([])) }).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED", reason: "evidence" });
    expect(await run.effect(0, 1)).toMatchObject({ status: "ARMED", role: "compensation" });
  });

  it("parks an obligation, and compensates where the connector is", async () => {
    const { store, replica, clock } = await setStage();
    const run = await waiting(store, "non_idempotent", { connector: "bank" });
    const seen: string[] = [];
    const with_ = { ...replica(), ...ready(bank(seen)) };
    await outbox(with_).runOnce(10);
    const driver = await hold(store, run.id);
    await driver.write({ kind: "notes.taken", data: { through: 1 } });
    await driver.write({ kind: "run.decided", data: { cause: "failed", outcome: null } });
    await driver.write({ kind: "run.compensating", data: {} });
    const without = { ...replica(), ...ready() };
    expect(await compensation(without).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await run.effect(0, 1)).toMatchObject({ status: "PENDING" });
    expect(without.logged).toContain("reactor.no_handler");
    await clock.elapse(1_001);
    await compensation(with_).runOnce(10);
    expect(await run.effect(0, 1)).toMatchObject({ status: "COMPENSATED" });
    expect(seen).toEqual(["dispatch", "compensate"]);
  });
});

describe("an attempt of a connector", () => {
  const repeatable = effect<unknown, unknown>("wire", {
    connector: "bank",
    semantics: "idempotent",
    retry: { attempts: 3, base: "1s" },
  });

  async function played(script: (() => unknown)[], between = 4_001) {
    const { store, replica, clock } = await setStage();
    const run = await waiting(store, "idempotent", { connector: "bank" });
    let n = 0;
    const bank = functionConnector("bank", { dispatch: () => script[n++]!() });
    const deps = { ...replica(), runner: createRunner({ workflows: [], effects: [repeatable], connectors: [bank] }) };
    for (const _ of script) {
      await outbox(deps).runOnce(10);
      await clock.elapse(between);
    }
    return { story: await story(store, run), effect: await run.effect(0), calls: () => n };
  }
  const fail = (error: Error) => () => Promise.reject(error);
  const no = new DefiniteFailure("403", { scope: "attempt" });

  it("is FAILED when the first attempt is refused", async () => {
    expect((await played([fail(no)])).effect).toMatchObject({ status: "FAILED", reason: "definite" });
    const { effect: after } = await played([fail(new NotSent()), fail(no)]);
    expect(after).toMatchObject({ status: "FAILED", reason: "definite" });
  });

  it("stays unknown when a refusal follows an uncertain attempt", async () => {
    const { story: records, effect: after } = await played([fail(new AckLost()), fail(no), fail(no)]);
    expect(records.filter((line) => !line.startsWith("attempt"))).toEqual([
      "PENDING ack_lost",
      "PENDING ack_lost",
      "UNKNOWN ack_lost",
    ]);
    expect(after.status).toBe("UNKNOWN");
    const considered = new DefiniteFailure("422", { scope: "key" });
    const { effect: repeated } = await played([fail(new AckLost()), fail(considered)]);
    expect(repeated).toMatchObject({ status: "FAILED", reason: "definite" });
    expect(settlesEarlierAttempts(considered, "non_idempotent")).toBe(false); // the upstream does not recognise the key
    const { effect: sure } = await played([fail(new AckLost()), fail(new DefiniteFailure("for good"))]);
    expect(sure).toMatchObject({ status: "FAILED", reason: "definite" });
    const { effect: good } = await played([fail(new AckLost()), () => "there it is"]);
    expect(good).toMatchObject({ status: "CONFIRMED" });
  });

  it("waits as long as Retry-After requests", async () => {
    const script = [fail(new NotSent("429", { retryAfterMs: 60_000 })), () => "later"];
    expect((await played(script, 59_999)).calls()).toBe(1);
    expect((await played(script, 60_001)).calls()).toBe(2);
  });
});
