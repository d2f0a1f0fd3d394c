import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRunner, effect, gate, Tape, workflow } from "../../src/exports/index.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { giveTokens, makeScene, tokenOf } from "../server/scene.ts";
import { ask, type Stage, stage } from "../server/stage.ts";

/** A service that started a payment could also send the CFO's approval. */
const cfo = gate<{ approved: boolean }>("cfo", { approvers: { role: "operator", not: "starter" } });
const pay = workflow("pay", async (tape, amount: number) => {
  const answer = await tape.gate(cfo);
  return answer.status === "received" && answer.value.approved ? `paid ${amount}` : "not paid";
});

let store: Store;
let current: Stage;
beforeEach(async () => {
  store = await openStore("memory:");
  await giveTokens(store, "acme");
  current = await stage({ store, credentials: "required", tenant: "home" });
});
afterEach(async () => {
  await current.close();
  await store.close();
});

const post = (path: string, role: "starter" | "worker" | "operator" | "admin", body: unknown) =>
  ask(current.server.exchange, "POST", path, { token: tokenOf("acme", role), body });
const yes = { name: "cfo", value: { approved: true } };

describe("an approval", () => {
  it("is refused from a lower role and from the starter, and accepted from an approver", async () => {
    await using app = await Tape.open({ store, tenant: "acme", runner: createRunner({ workflows: [pay] }) });
    for (const [id, starter] of [
      ["p-1", "starter"],
      ["p-2", "operator"],
    ] as const) {
      expect((await post("/v1/runs", starter, { id, workflow: "pay", input: 7 })).status).toBe(200);
    }
    // A signal for a gate that is not open yet is accepted, but does not resolve it.
    await post("/v1/runs/p-1/signals", "starter", yes);
    while ((await app.gates.list()).length < 2) await new Promise((soon) => setImmediate(soon));
    const { json } = await ask(current.server.exchange, "GET", "/v1/gates?run=p-1&open=true", {
      token: tokenOf("acme", "reader"),
    });
    expect((json as { gates: unknown[] }).gates).toMatchObject([
      { name: "cfo", approvers: { role: "operator", not: "starter" } },
    ]);
    const own = await post("/v1/runs/p-1/signals", "starter", yes);
    expect(own).toMatchObject({ status: 403, json: { code: "TAPE_NOT_APPROVER", details: { gate: "cfo" } } });
    expect((await post("/v1/runs/p-1/signals", "worker", yes)).status).toBe(403);
    expect((await post("/v1/runs/p-2/signals", "operator", yes)).status).toBe(403);
    expect((await store.read.run("acme", "p-1"))?.status).not.toBe("COMPLETED");
    expect((await post("/v1/runs/p-1/signals", "operator", yes)).status).toBe(200);
    expect((await post("/v1/runs/p-2/signals", "admin", yes)).status).toBe(200);
    expect(await (await app.run("p-1")).result()).toBe("paid 7");
    expect(await (await app.run("p-2")).result()).toBe("paid 7");
  });

  it("cannot be written by a worker without a signal, and a worker cannot choose the starter", async () => {
    const scene = await makeScene(store, "globex");
    const token = tokenOf("globex", "worker");
    const append = async (data: object) => {
      const records = [{ kind: "gate.resolved", data: { pos: 1, to: "RECEIVED", ...data } }];
      const body = { batch: [{ fence: scene.fence, entry: { after: scene.head, records } }] };
      const { json } = await ask(current.server.exchange, "POST", "/v1/store/append", { token, body });
      return (json as { results: [{ ok: boolean; error?: { code: string } }] }).results[0];
    };
    expect(await append({ value: true })).toMatchObject({ ok: false, error: { code: "TAPE_FORBIDDEN" } });
    await store.intake.signal("globex", scene.run, { name: "cfo", value: false });
    expect(await append({ value: false, note: 2 })).toMatchObject({ ok: false, error: { code: "TAPE_FORBIDDEN" } });
    expect(await append({ value: false, note: 1 })).toMatchObject({ ok: true });
    const specs = [{ id: "x-1", workflow: "pay", input: 1, starters: ["token:other"] }];
    await ask(current.server.exchange, "POST", "/v1/store/create", { token, body: { calls: [{ specs }] } });
    const [created] = await store.read.journal("globex", { run: "x-1" });
    expect(created).toMatchObject({ data: { starters: ["token:globex-worker"] } });
  });

  it("compares the names that embedded programs give for starter and sender", async () => {
    await using app = await Tape.open({ store, tenant: "acme", runner: createRunner({ workflows: [pay] }) });
    const run = await app.start(pay, 3, { by: "ada" });
    while ((await app.gates.list()).length < 1) await new Promise((soon) => setImmediate(soon));
    await expect(app.signal(run.id, cfo, { approved: true }, { by: "ada" })).rejects.toMatchObject({
      code: "TAPE_SELF_APPROVAL",
    });
    await app.signal(run.id, cfo, { approved: true }, { by: "bob" });
    expect(await run.result()).toBe("paid 3");
  });

  it("of a bound call is refused to the token that started the run, whenever it is sent", async () => {
    const wired: number[] = [];
    const wire = effect("wire", async (amount: number) => wired.push(amount), { semantics: "read" });
    const boss = gate<boolean>("boss");
    const own = gate<boolean>("own", { approvers: { self: true } });
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const send = workflow("send", async (tape, amount: number) => {
      await tape.step("wait", () => opened);
      await tape.gate(boss, { binds: wire.with(amount) });
      await tape.gate(own, { binds: wire.with(amount) });
      return tape.effect(wire.with(amount));
    });
    await using app = await Tape.open({
      ...{ store, tenant: "acme" },
      runner: createRunner({ workflows: [send], effects: [wire] }),
    });
    const signal = (role: "starter" | "operator" | "admin", body: object) =>
      post("/v1/runs/s-1/signals", role, { value: true, ...body });
    // The agent's token has the role admin, and all the same it cannot approve what it started.
    const early = [{ name: "boss", value: true, key: "early" }];
    expect((await post("/v1/runs", "admin", { id: "s-1", workflow: "send", input: 7, signals: early })).status).toBe(
      200,
    );
    const binds = wire.with(7).hash;
    expect(await signal("admin", { name: "boss", binds })).toMatchObject({ json: { code: "TAPE_SELF_APPROVAL" } });
    expect((await signal("admin", { name: "boss" })).status).toBe(200);
    open();
    while ((await app.gates.list()).length < 1) await new Promise((soon) => setImmediate(soon));
    expect(await signal("admin", { name: "boss" })).toMatchObject({
      status: 403,
      json: { code: "TAPE_SELF_APPROVAL" },
    });
    expect((await app.gates.list()).map(({ name }) => name)).toEqual(["boss"]);
    expect((await signal("operator", { name: "boss", binds, mustMatch: true })).status).toBe(200);
    while ((await app.gates.list())[0]?.name !== "own") await new Promise((soon) => setImmediate(soon));
    expect((await signal("admin", { name: "own" })).status).toBe(200);
    expect(await (await app.run("s-1")).result()).toBe(1);
    expect(wired).toEqual([7]);
  });

  it("that arrives while the gate is being opened is not taken from a token that was not checked", async () => {
    const boss = gate<string>("boss");
    const wire = effect("wire", async (_amount: number) => "wired", { semantics: "read" });
    const send = workflow("send", async (tape) => (await tape.gate(boss, { binds: wire.with(7) })) && "approved");
    const via = { token: "agent", name: "agent", role: "admin" };
    const approve = (more: object) => store.intake.signal("acme", "s-2", { name: "boss", value: "yes", ...more });
    let raced = 0;
    const inTheWay = async <T>(batch: Parameters<Store["fenced"]["appendAll"]>[0], write: () => Promise<T>) => {
      if (batch.some(([, { records }]) => records.some(({ kind }) => kind === "gate.opened")) && raced++ === 0) {
        await approve({ via });
      }
      return write();
    };
    const racing: Store = {
      ...store,
      fenced: {
        ...store.fenced,
        append: (fence, entry) => inTheWay([[fence, entry]], () => store.fenced.append(fence, entry)),
        appendAll: (batch) => inTheWay(batch, () => store.fenced.appendAll(batch)),
      },
    };
    await using app = await Tape.open({
      ...{ store: racing, tenant: "acme" },
      runner: createRunner({ workflows: [send], effects: [wire] }),
    });
    const starters = ["token:agent"];
    await store.intake.createRuns("acme", [{ id: "s-2", workflow: "send", input: null, starters }]);
    while ((await app.gates.list()).length < 1) await new Promise((soon) => setImmediate(soon));
    while ((await store.read.run("acme", "s-2"))?.status !== "WAITING") await new Promise((soon) => setImmediate(soon));
    expect(raced).toBeGreaterThan(0);
    expect((await app.gates.list()).length).toBe(1);
    await approve({ via: { ...via, token: "cfo" } });
    expect(await (await app.run("s-2")).result()).toBe("approved");
  });

  it("audits a signal with a reason, of every credential", async () => {
    const scene = await makeScene(store, "globex");
    const body = { name: "cfo", value: 1, by: "ada", reason: "the ticket is closed" };
    const sent = { token: tokenOf("globex", "starter"), body };
    expect((await ask(current.server.exchange, "POST", `/v1/runs/${scene.idle}/signals`, sent)).status).toBe(200);
    expect((await store.read.audit("globex"))[0]).toMatchObject({
      ...{ action: "run.signal", by: "starter of globex for ada", reason: "the ticket is closed" },
    });
  });

  it("rejects empty or invalid approvers where the gate is defined", () => {
    for (const approvers of [
      {},
      { role: "boss" },
      { not: "me" },
      { tokens: [] },
      { agents: true },
      { self: true, not: "starter" },
      { whom: ["x"] },
    ]) {
      expect(() => gate("g", { approvers } as never)).toThrow(/TAPE_BAD_INPUT|approvers is/);
    }
  });
});
