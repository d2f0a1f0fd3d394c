import { afterEach, describe, expect, it } from "vitest";
import { contract, type RouteName, routes } from "../../src/protocol/contract.ts";
import type { Route } from "../../src/protocol/route.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { everything } from "../../testkit/conformance/holder.ts";
import { requestOf } from "./samples.ts";
import { ghostOf, giveTokens, makeScene, type Scene, tokenOf } from "./scene.ts";
import { ask, firstLines, type Stage, type StageOptions, stage } from "./stage.ts";

const open: Stage[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function twoTenants(options: StageOptions = {}): Promise<Stage & { readonly scene: Scene }> {
  const one = await stage({ credentials: "required", tenant: "home", ...options });
  open.push(one);
  const scene = await makeScene(one.store, "acme");
  await giveTokens(one.store, "globex");
  return { ...one, scene };
}

/** Whose things a call names, and whether there are any of another tenant's at all. */
type World = "foreign" | "absent" | "alone";

/** The response to an admin of globex, without the names that the request contained. */
async function reply(name: RouteName, world: World) {
  const clock = new ManualClock();
  const one = await stage({ credentials: "required", tenant: "home", clock });
  open.push(one);
  const { store, server } = one;
  const other = await makeScene(world === "alone" ? (await spare(clock)).store : store, "acme");
  await giveTokens(store, "globex");
  await clock.elapse(20_000); // timers are due, and unserved work is old enough to be reported
  const before = await everything(store, "acme");
  const named = world === "foreign" ? other : ghostOf(other);
  const { method, url, body } = requestOf(name, named);
  const gone = new AbortController();
  const answer = await server.exchange({
    ...{ method, url, signal: gone.signal },
    headers: { "content-type": "application/json", authorization: `Bearer ${tokenOf("globex", "admin")}` },
    ...(body === undefined ? {} : { body: new TextEncoder().encode(JSON.stringify(body)) }),
  });
  const reading = readAll(answer.body);
  await clock.elapse(10); // by then a stream has sent its first lines
  gone.abort();
  const text = await reading;
  const plain = text
    .replaceAll(named.token, "TOKEN")
    .replaceAll(/(ghost|canary)-/g, "NAME-")
    .replaceAll(new RegExp(`(lease |journal |"name":)(${named.journal}|${named.item})\\b`, "g"), "$1NUMBER")
    .replaceAll(/"(journal|cursor|run|id|secret|storeId)":("[^"]*"|\d+)/g, '"$1":"…"');
  return { status: answer.status, plain, text, unchanged: (await everything(store, "acme")) === before };
}

async function spare(clock: ManualClock): Promise<Stage> {
  const one = await stage({ clock });
  open.push(one);
  return one;
}

async function readAll(body: Uint8Array | AsyncIterable<Uint8Array>): Promise<string> {
  if (body instanceof Uint8Array) return Buffer.from(body).toString();
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/**
 * Figures of the process and the contract itself: no tenant's, and different from one moment to the next. The token of a
 * callback is the right to call it, for every caller.
 */
const withoutTenant: readonly RouteName[] = ["metrics", "openapi", "callbacks.deliver"];

describe("another tenant's data is reported exactly like absent data", () => {
  for (const { name } of routes.filter((route) => !withoutTenant.includes(route.name))) {
    it(`${(contract[name] as Route).stream ? "stream " : ""}${name}`, async () => {
      const foreign = await reply(name, "foreign");
      const absent = await reply(name, "absent");
      expect(foreign.plain).toBe(absent.plain);
      expect(foreign.status).toBe(absent.status);
      expect(absent.plain).toBe((await reply(name, "alone")).plain);
      // Its own new run may have that id; the response may contain the name only where the request did.
      expect(foreign.text).not.toContain('"canary"');
      expect(foreign.unchanged).toBe(true);
    });
  }
});

describe("what a number names", () => {
  const token = tokenOf("globex", "worker");
  const claimant = { owner: "w/9", label: "w", reactor: "recovery", ttlMs: 60_000 };

  it("is closed to a stolen fence", async () => {
    const { server, store, scene } = await twoTenants();
    // The server knows whose it is before the stranger asks: it must not take its knowledge for a permission.
    const renewal = { body: { renewals: [{ fence: scene.fence, progress: 1 }] } };
    await ask(server.exchange, "POST", "/v1/store/renew", { ...renewal, token: tokenOf("acme", "worker") });
    const { body } = requestOf("store.append", scene);
    const before = await everything(store, "acme");
    const { json } = await ask(server.exchange, "POST", "/v1/store/append", { body, token });
    expect(json).toMatchObject({ results: [{ ok: false, error: { code: "TAPE_FENCED" } }] });
    const renewed = await ask(server.exchange, "POST", "/v1/store/renew", {
      ...{ body: { renewals: [{ fence: scene.fence, progress: 7 }] }, token },
    });
    expect(renewed.json).toMatchObject({ results: [{ ok: false, error: { code: "TAPE_FENCED" } }] });
    expect(await everything(store, "acme")).toBe(before);
    const own = await ask(server.exchange, "POST", "/v1/store/append", { body, token: tokenOf("acme", "worker") });
    expect(own.json).toMatchObject({ results: [{ ok: true }] });
  });

  it("refuses only the foreign item of a batch, with results in order", async () => {
    const { server, scene } = await twoTenants();
    const made = await ask(server.exchange, "POST", "/v1/store/create", {
      ...{
        token,
        body: { calls: [{ specs: [{ id: "own", workflow: "w", input: 1 }], first: { ...claimant, nonce: "7" } }] },
      },
    });
    const { term } = (made.json as { calls: [{ results: [{ term: { fence: unknown; head: number } }] }] }).calls[0]
      .results[0];
    const records = [{ kind: "step.done", data: { pos: 0, name: "s", value: 1 } }];
    const ours = { fence: term.fence, entry: { after: term.head, records } };
    const theirs = { fence: scene.fence, entry: { after: scene.head, records } };
    const { json } = await ask(server.exchange, "POST", "/v1/store/append", { token, body: { batch: [theirs, ours] } });
    expect(json).toMatchObject({ results: [{ ok: false, error: { code: "TAPE_FENCED" } }, { ok: true }] });
  });

  it("cannot be reached by a record in another tenant's journal", async () => {
    const { server, store, scene } = await twoTenants();
    const made = await ask(server.exchange, "POST", "/v1/store/create", {
      ...{
        token,
        body: { calls: [{ specs: [{ id: "own", workflow: "w", input: 1 }], first: { ...claimant, nonce: "7" } }] },
      },
    });
    const { term } = (made.json as { calls: [{ results: [{ term: { fence: unknown; head: number } }] }] }).calls[0]
      .results[0];
    const before = await everything(store, "acme", "globex");
    const parent = (journal: number) => ({ journal, pos: 0, id: "own" });
    const write = async (journal: number) =>
      (
        await ask(server.exchange, "POST", "/v1/store/append", {
          token,
          body: {
            batch: [
              {
                fence: term.fence,
                entry: {
                  after: term.head,
                  records: [
                    {
                      kind: "run.ended",
                      data: { status: "COMPLETED", outcome: 1, notesTaken: 0, parent: parent(journal) },
                    },
                  ],
                },
              },
            ],
          },
        })
      ).json;
    const foreign = JSON.stringify(await write(scene.journal)).replaceAll(
      new RegExp(`\\b${scene.journal}\\b`, "g"),
      "N",
    );
    expect(foreign).toContain("TAPE_ILLEGAL_TRANSITION");
    expect(JSON.stringify(await write(900_000_001)).replaceAll("900000001", "N")).toBe(foreign);
    expect(await everything(store, "acme", "globex")).toBe(before);
  });

  it("sends wake hints for the tenant's own journals and values only", async () => {
    const { server, store, scene } = await twoTenants();
    const gone = new AbortController();
    const answer = await server.exchange({
      ...{ method: "GET", url: "/v1/store/wake-hints", signal: gone.signal },
      headers: { authorization: `Bearer ${token}` },
    });
    const lines = firstLines(answer, 1);
    await store.intake.signal("acme", scene.idle, { name: "s", value: 1 });
    await store.intake.putValue("acme", "canary-secret", 1, "unconditional");
    await store.claim.find({ claimant, nextReactor: "acmes-own", staleOf: [], limit: 1, nonce: 9n, tenant: "acme" });
    await store.intake.putValue("globex", "mine", 1, "unconditional");
    const received = JSON.stringify(await lines);
    gone.abort();
    expect(received).toContain('"key":"mine"');
    expect(received).not.toContain("canary");
    expect(received).not.toContain('"of":"journal"');
  });

  it("sends every wake hint for the tenant's own journals", async () => {
    const { server, store, scene } = await twoTenants();
    await store.intake.createRuns("globex", [{ id: "mine", workflow: "w", input: 1 }]);
    const { journal } = (await store.read.run("globex", "mine"))!;
    const gone = new AbortController();
    const { body } = await server.exchange({
      ...{ method: "GET", url: "/v1/store/wake-hints", signal: gone.signal },
      headers: { authorization: `Bearer ${token}` },
    });
    const hints = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    for (let k = 0; k < 3; k++) {
      const next = hints.next();
      await store.intake.signal("acme", scene.idle, { name: "s", value: k });
      await store.intake.signal("globex", "mine", { name: "s", value: k });
      let text = Buffer.from((await next).value as Uint8Array).toString();
      while (!text.includes(`"journal":${journal}`))
        text += Buffer.from((await hints.next()).value as Uint8Array).toString();
      expect([...text.matchAll(/"journal":(\d+)/g)].map(([, number]) => Number(number))).toEqual([journal]);
    }
    gone.abort();
  });
});
