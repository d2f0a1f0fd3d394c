import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../examples/until.ts";
import { openRemote } from "../../src/client/store.ts";
import { AckLost, createRunner, effect, isTapeError, openStore, Tape, workflow } from "../../src/exports/index.ts";
import { serve } from "../../src/host/serve.ts";
import type { Role } from "../../src/protocol/route.ts";

const bootstrap = `root.${"s".repeat(40)}`;
const hello = workflow("hello", async (tape, name: string) => tape.step("greet", () => `Hello ${name}`));
const wire = effect("wire", async (_: string): Promise<string> => Promise.reject(new AckLost("the line went dead")), {
  semantics: "non_idempotent",
  compensate: async () => "undone",
});
const pay = workflow("pay", async (tape, invoice: string) => (await tape.attempt(wire.with(invoice))).status);

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "answered",
    (error: unknown) => (isTapeError(error) ? error.code : error),
  );

async function scene() {
  const store = await openStore("memory:");
  const serving = await serve({ store, port: 0, credentials: "required", bootstrapToken: bootstrap, tenant: "acme" });
  onTestFinished(async () => {
    await serving.stop();
    await store.close();
  });
  const admin = await openRemote(serving.url, { token: bootstrap });
  onTestFinished(() => admin.close());
  const tokenOf = async (role: Role): Promise<string> =>
    (await admin.remote.call("tokens.create", { body: { name: `the ${role}`, role, reason: "test" } })).secret;
  const connect = async (role: Role, more: object = {}): Promise<Tape> => {
    const app = await Tape.connect(serving.url, { token: await tokenOf(role), ...more });
    onTestFinished(() => app.close());
    return app;
  };
  return { store, serving, admin, tokenOf, connect };
}

describe("the role of a credential", () => {
  it("starter: starts and reads, while a worker elsewhere drives", async () => {
    const { connect } = await scene();
    const starter = await connect("starter");
    const run = await starter.start(hello, "Ada", { id: "h-1", labels: { team: "a" }, deadline: "1h" });
    expect(await run.status()).toBe("RUNNABLE");
    expect(await codeOf(starter.start(hello, "Grace", { id: "h-1" }))).toBe("TAPE_RUN_CONFLICT");
    await connect("worker", { runner: createRunner({ workflows: [hello] }) });
    expect(await run.result()).toBe("Hello Ada");
    expect((await starter.runs.list({ label: { key: "team", value: "a" } })).map(({ id }) => id)).toEqual(["h-1"]);
    expect(starter.tenant).toBe("acme");
    for await (const { kind, data } of starter.journal("h-1"))
      if (kind === "run.created") expect(data.deadlineMs).toBe(3_600_000);
    expect(await codeOf(starter.start(hello, "Ada", { deadline: 0 }))).toBe("TAPE_BAD_INPUT");
  });

  it("reader: starts nothing; a wrong token is refused", async () => {
    const { connect, serving } = await scene();
    const reader = await connect("reader");
    expect(await codeOf(reader.start(hello, "Ada"))).toBe("TAPE_FORBIDDEN");
    expect(await reader.runs.list()).toEqual([]);
    expect(await codeOf(Tape.connect(serving.url, { token: `root.${"x".repeat(40)}` }))).toBe("TAPE_UNAUTHENTICATED");
  });

  it("operator: pauses, preempts and redrives, but does not drive", async () => {
    const { connect } = await scene();
    const worker = await connect("worker", { runner: createRunner({ workflows: [hello] }) });
    const operator = await connect("operator");
    const lease = await worker.leases.acquire("sweeper");
    expect(await codeOf(operator.leases.tryAcquire("sweeper"))).toBe("TAPE_FORBIDDEN");
    await operator.leases.preempt("sweeper", { by: "ada", reason: "it hangs" });
    await lease.renew();
    expect(lease.belief).toBe("lost");
    const [, last] = await operator.leases.history("sweeper");
    expect(last).toMatchObject({ startReason: "manual", auditReason: "it hangs", by: "the operator for ada" });
    await operator.leases.pause("sweeper", { by: "ada", reason: "not now" });
    expect(await codeOf(worker.leases.tryAcquire("sweeper"))).toBe("TAPE_LEASE_PAUSED");
    await operator.leases.resume("sweeper", { by: "ada", reason: "now" });
    expect(await worker.leases.tryAcquire("sweeper")).toBeDefined();
    expect(await codeOf(operator.redrive("nobody", { by: "ada", reason: "x" }))).toBe("TAPE_RUN_NOT_FOUND");
    expect(await codeOf(worker.redrive("nobody", { by: "ada", reason: "x" }))).toBe("TAPE_FORBIDDEN");
  });

  it("operator: resolves an effect in leaveInDoubt; a worker writes what needs a runner", async () => {
    const { connect, store } = await scene();
    const runner = createRunner({ workflows: [pay], effects: [wire] });
    const worker = await connect("worker", { runner });
    const operator = await connect("operator");
    const leaveInDoubt = async (id: string): Promise<void> => {
      await worker.start(pay, id, { id });
      await until(async () => (await operator.effects.list({ run: id })).find(({ status }) => status !== "DISPATCHED"));
    };
    await leaveInDoubt("p-1");
    const settling = { run: "p-1", pos: 0, by: "ada", reason: "asked the bank" };
    await operator.resolve({ ...settling, resolution: { as: "failed" } });
    expect(await (await operator.run("p-1")).result()).toBe("failed");
    await leaveInDoubt("p-2");
    const happened = { ...settling, run: "p-2", resolution: { as: "confirmed", value: "W-1" } } as const;
    await operator.resolve(happened); // the server has no runner: the worker's reconciler writes it down
    expect(await (await operator.run("p-2")).result()).toBe("confirmed");
    const actions = (await store.read.audit("acme")).filter(({ action }) => action === "resolve");
    expect(actions.map(({ by, subject }) => `${by} of ${subject}`)).toContain("the operator for ada of p-1");
  });

  it("worker: may not preempt a live holder", async () => {
    const { connect } = await scene();
    const [one, two] = [await connect("worker"), await connect("worker")];
    const lease = await one.leases.acquire("sweeper");
    expect(await codeOf(two.leases.takeover("sweeper", { by: "eve", reason: "mine" }))).toBe("TAPE_FORBIDDEN");
    expect(await lease.renew()).toBe("held");
  });
});

describe("tenants", () => {
  it("see another tenant's data as absent, and write nothing for it", async () => {
    const { admin, store } = await scene();
    await store.intake.createRuns("globex", [{ id: "theirs", workflow: "w", input: 1 }]);
    expect(await admin.read.run("acme", "theirs")).toBeUndefined();
    expect(await admin.read.run("globex", "theirs")).toBeUndefined();
    expect(await codeOf(admin.intake.signal("globex", "theirs", { name: "s", value: 1 }))).toBe("TAPE_RUN_NOT_FOUND");
    expect(await codeOf(admin.intake.putValue("globex", "k", 1, "must_create"))).toBe("TAPE_FORBIDDEN");
    expect(await codeOf(admin.intake.createRuns("globex", [{ id: "x", workflow: "w", input: 1 }]))).toBe(
      "TAPE_FORBIDDEN",
    );
    expect((await store.read.run("globex", "theirs"))?.notes).toBe(0);
    expect(await store.read.values("globex", "")).toEqual([]);
  });

  it("report processes for the credential's tenant; a reader is refused", async () => {
    const { admin, store, connect } = await scene();
    const owners = async (of: string) => (await store.read.processes(of)).map(({ owner }) => owner);
    const report = { owner: "o", label: "l", body: { token: 5n } };
    await store.intake.reportProcess("globex", report);
    expect(await codeOf(admin.intake.reportProcess("globex", { ...report, label: "mine" }))).toBe("TAPE_FORBIDDEN");
    expect(await admin.read.processes("globex")).toEqual([]);
    const worker = (await connect("worker")).store;
    await worker.intake.reportProcess("acme", report);
    expect(await admin.read.processes("acme")).toEqual([
      { ...report, at: expect.any(Number), agoMs: expect.any(Number) },
    ]);
    await worker.intake.removeProcess("globex", "o");
    expect([await owners("acme"), await owners("globex")]).toEqual([["o"], ["o"]]);
    const reader = (await connect("reader")).store;
    expect(await codeOf(reader.intake.reportProcess("acme", report))).toBe("TAPE_FORBIDDEN");
    expect(await codeOf(reader.intake.removeProcess("acme", "o"))).toBe("TAPE_FORBIDDEN");
    await worker.intake.removeProcess("acme", "o");
    expect([await owners("acme"), await owners("globex")]).toEqual([[], ["o"]]);
    expect((await store.read.processes("globex"))[0]?.label).toBe("l");
  });
});

describe("a server's URL", () => {
  it("works with openStore and Tape.open", async () => {
    const { serving, tokenOf } = await scene();
    const token = await tokenOf("worker");
    const store = await openStore(serving.url, { remote: { token } });
    await using app = await Tape.open({ store, runner: createRunner({ workflows: [hello] }) });
    expect(app.tenant).toBe("acme");
    expect(await (await app.start(hello, "Ada")).result()).toBe("Hello Ada");
    await app.close();
    await store.close();
    expect(await codeOf(store.read.runs("acme"))).toBe("TAPE_STORE_CLOSED");
  });
});

it("returns the first result for a repeated key, and refuses a different call", async () => {
  const { admin } = await scene();
  const once = admin.once({ tenant: "acme", key: "k-1", hash: "unused" });
  const first = await once.putValue("acme", "v", "a", "unconditional");
  expect(await once.putValue("acme", "v", "a", "unconditional")).toEqual(first);
  expect(await codeOf(once.putValue("acme", "v", "b", "unconditional"))).toBe("TAPE_KEY_REUSED");
  expect((await admin.read.value("acme", "v"))?.version).toBe(1);
});

it("audits prunes and token deletions as operator actions", async () => {
  const { admin, tokenOf } = await scene();
  await tokenOf("reader");
  const [token] = await admin.read.tokens();
  await admin.intake.revokeToken("acme", token!.id, { by: "ada", reason: "lost" });
  expect((await admin.read.token(token!.id))?.revokedAt).not.toBeNull();
  expect(await codeOf(admin.intake.revokeToken("acme", "nobody", { by: "ada", reason: "x" }))).toBe("TAPE_NOT_FOUND");
  expect(await admin.intake.prune("acme", 1, 10, { by: "ada", reason: "old" })).toBe(0);
  const actions = (await admin.read.audit("acme")).map(({ action, reason }) => `${action}: ${reason}`);
  expect(actions).toContain("token.revoke: lost");
  expect(actions).toContain("token.create: test");
  expect(await admin.health()).toEqual({});
});
