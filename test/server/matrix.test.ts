import { afterEach, describe, expect, it } from "vitest";
import { contract, type RouteName, routes } from "../../src/protocol/contract.ts";
import { type Role, type Route, roles } from "../../src/protocol/route.ts";
import { everything } from "../../testkit/conformance/holder.ts";
import { requestOf } from "./samples.ts";
import { giveTokens, makeScene, tokenOf } from "./scene.ts";
import { ask, firstLines, type Stage, stage } from "./stage.ts";

/** Written down here once more, by hand: who may do what must not follow from the code that is tested. */
const allowed: Readonly<Record<Role | "open", readonly Role[]>> = {
  open: ["reader", "starter", "worker", "operator", "admin"],
  reader: ["reader", "starter", "worker", "operator", "admin"],
  starter: ["starter", "worker", "operator", "admin"],
  worker: ["worker", "admin"],
  operator: ["operator", "admin"],
  admin: ["admin"],
};

const silent: readonly RouteName[] = ["store.wakeHints"]; // says something only when something happens

let current: Stage | undefined;
afterEach(() => current?.close());

async function call(name: RouteName, token: string | undefined) {
  current = await stage({ credentials: "required", tenant: "acme" });
  const { store, server } = current;
  const scene = await makeScene(store, "acme");
  const before = await everything(store, "acme");
  const { method, url, body } = requestOf(name, scene);
  const gone = new AbortController();
  const answer = await server.exchange({
    ...{ method, url, signal: gone.signal },
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: new TextEncoder().encode(JSON.stringify(body)) }),
  });
  const streams = !(answer.body instanceof Uint8Array);
  const json = streams
    ? await firstLines(answer, silent.includes(name) ? 0 : 1)
    : new TextDecoder().decode(answer.body as Uint8Array);
  gone.abort();
  return { status: answer.status, json: String(json), streams, changed: (await everything(store, "acme")) !== before };
}

describe("role × route", () => {
  it("gives every route a role, and every operator action a required reason", () => {
    for (const route of routes) {
      expect([...roles, "open"], route.name).toContain(route.role);
      if (route.role === "operator" && route.method !== "GET") expect(route.manual, route.name).toBe(true);
    }
    expect(routes.filter(({ role }) => role === "open").map(({ name }) => name)).toEqual([
      ...["callbacks.deliver", "livez", "readyz", "healthz", "metrics", "openapi"],
    ]);
  });

  for (const { name } of routes) {
    const { role, stream, foreign = false } = contract[name] as Route;
    it(`${name} is for ${role}`, async () => {
      for (const asking of roles) {
        const { status, json, streams, changed } = await call(name, tokenOf("acme", asking));
        if (allowed[role].includes(asking)) {
          expect(status, `${asking}: ${json}`).toBe(200);
          expect(streams).toBe(stream === true);
        } else {
          expect({ asking, status, changed }).toEqual({ asking, status: 403, changed: false });
          expect(json).toContain("TAPE_FORBIDDEN");
          expect(json).toContain(`needs the role ${role}`);
        }
        await current?.close();
      }
      const { status, changed } = await call(name, undefined);
      // The token in the path of a callback is its right.
      expect({ status, changed }).toEqual({ status: role === "open" ? 200 : 401, changed: foreign });
    });
  }
});

describe("what a role alone does not decide", () => {
  it("refuses a takeover of a live lease to a worker, and allows it to an admin", async () => {
    current = await stage({ credentials: "required" });
    const { store, server } = current;
    const { run } = await makeScene(store, "acme");
    const claimant = { owner: "eve/1", label: "eve", reactor: "recovery", ttlMs: 60_000 };
    const body = { target: { run }, claimant, nonce: "300", expect: "any", by: "eve", auditReason: "mine" };
    const requested = (token: string) => ask(server.exchange, "POST", "/v1/store/acquire", { body, token });
    const before = await everything(store, "acme");
    expect(await requested(tokenOf("acme", "worker"))).toMatchObject({ status: 403, json: { code: "TAPE_FORBIDDEN" } });
    expect(await everything(store, "acme")).toBe(before);
    expect(await requested(tokenOf("acme", "admin"))).toMatchObject({ status: 200, json: { ok: true } });
    const terms = await store.read.terms("acme", { run });
    expect(terms.at(-1)).toMatchObject({ by: "admin of acme for eve", auditReason: "mine", startReason: "manual" });
  });

  it("allows store.restored to the store's operator only", async () => {
    current = await stage({ credentials: "required", tenant: "home" });
    const { store, server } = current;
    await makeScene(store, "acme");
    const requested = { body: { reason: "restored" }, token: tokenOf("acme", "admin") };
    const before = await everything(store, "acme");
    expect(await ask(server.exchange, "POST", "/v1/store/restored", requested)).toMatchObject({ status: 403 });
    expect(await everything(store, "acme")).toBe(before);
  });

  it("lets only the store's operator set quotas; a tenant sees its own", async () => {
    current = await stage({ credentials: "required", tenant: "home" });
    const { store, server } = current;
    await makeScene(store, "acme");
    await giveTokens(store, "home");
    const call = (of: string, method: string, url: string, body?: unknown) =>
      ask(server.exchange, method, url, { token: tokenOf(of, "admin"), ...(body !== undefined && { body }) });
    const raised = { tenant: "acme", set: { runs: -1 }, reason: "we need more" };
    const before = await everything(store, "acme");
    expect(await call("acme", "POST", "/v1/quotas", raised)).toMatchObject({ status: 403 });
    expect(await call("acme", "GET", "/v1/quotas")).toMatchObject({ status: 403 });
    expect(await everything(store, "acme")).toBe(before);
    const held = { tenant: "acme", set: { runs: 7, streams: 2 }, reason: "a trial" };
    expect(await call("home", "POST", "/v1/quotas", held)).toMatchObject({
      status: 200,
      json: { limits: { runs: 7 } },
    });
    expect(await call("home", "GET", "/v1/quotas")).toMatchObject({ json: { quotas: [{ tenant: "acme" }] } });
    const own = await call("acme", "GET", "/v1/quota");
    expect(own).toMatchObject({ status: 200, json: { tenant: "acme", limits: { runs: 7, streams: 2, bytes: null } } });
    expect((await store.read.audit("acme"))[0]).toMatchObject({ action: "quota.set", reason: "a trial" });
  });

  it("records the credential's name with an action, whatever name was sent", async () => {
    current = await stage({ credentials: "required" });
    const { store, server } = current;
    const { stuck, idle } = await makeScene(store, "acme");
    const token = tokenOf("acme", "operator");
    const body = { reason: "seen to", by: "ada" };
    expect((await ask(server.exchange, "POST", `/v1/runs/${stuck}/redrive`, { body, token })).status).toBe(200);
    await ask(server.exchange, "POST", `/v1/runs/${idle}/cancel`, { body: { reason: "no more" }, token });
    const acted = (await store.read.journal("acme", { run: stuck })).find(({ kind }) => kind === "operator.action");
    expect(acted?.data).toMatchObject({ by: "operator of acme for ada", action: "redrive", reason: "seen to" });
    const [note] = await store.read.journal("acme", { run: idle }, { inbox: true });
    expect(note?.data).toMatchObject({ reason: "no more", by: "operator of acme" });
    const { json } = await ask(server.exchange, "GET", "/v1/audit", { token });
    expect(JSON.stringify(json)).toContain("operator of acme for ada");
  });

  it("audits every operator action with author and reason, but no refused one", async () => {
    const manual = routes.filter((route) => route.manual === true).map(({ name }) => name);
    expect(manual.length).toBeGreaterThan(7);
    for (const name of manual) {
      current = await stage({ credentials: "required", tenant: "acme" });
      const { store, server } = current;
      const scene = await makeScene(store, "acme");
      const { method, url, ...rest } = requestOf(name, scene);
      if (name === "leases.resume")
        await store.claim.pause("acme", scene.lease, true, "setup", "nothing else to resume");
      if (name === "queues.resume")
        await store.intake.pauseQueue("acme", scene.queue, true, { by: "setup", reason: "nothing else to resume" });
      const audit = async () => (await store.read.audit(undefined)).filter(({ by }) => by !== "setup");
      await ask(server.exchange, method, url, { ...rest, token: tokenOf("acme", "starter") });
      expect(await audit(), name).toEqual([]);
      const { status } = await ask(server.exchange, method, url, { ...rest, token: tokenOf("acme", "admin") });
      expect(status, name).toBe(200);
      expect((await audit())[0], name).toMatchObject({ by: "admin of acme", reason: "a test" });
      await current.close();
    }
  });
});
