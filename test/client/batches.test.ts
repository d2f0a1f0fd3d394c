import { expect, it, onTestFinished } from "vitest";
import type { RemoteStore } from "../../src/client/remote.ts";
import { openRemote } from "../../src/client/store.ts";
import { openStore } from "../../src/host/open-store.ts";
import { isTapeError } from "../../src/model/errors.ts";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { Transport, WireRequest } from "../../src/protocol/transport.ts";
import { serverOn } from "./stage.ts";

const tenant = "acme";
const step = (pos: number): NewRecord => ({ kind: "step.done", data: { pos, name: "s", value: pos } });
const first = { owner: "o", label: "l", reactor: "agent", ttlMs: 30_000 };
let nonce = 1n;

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "answered",
    (error: unknown) => (isTapeError(error) ? error.code : error),
  );

async function scene(through: (exchange: Transport) => Transport = (exchange) => exchange) {
  const behind = await openStore("memory:");
  const requests: WireRequest[] = [];
  const { exchange } = serverOn(behind, tenant);
  const seen: Transport = (request) => {
    requests.push(request);
    return through(exchange)(request);
  };
  const store = await openRemote("http://127.0.0.1:1", { exchange: seen });
  onTestFinished(async () => {
    await store.close();
    await behind.close();
  });
  const sent = (path: string): string[] =>
    requests.filter(({ url }) => url === path).map(({ body }) => Buffer.from(body!).toString());
  return { behind, store, sent };
}

function held(store: RemoteStore, count: number): Promise<Term[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, k): Promise<Term> => {
      const spec = { id: `r-${nonce}-${k}`, workflow: "w", input: k };
      const [verdict] = await store.intake.createRuns(tenant, [spec], { ...first, nonce: ++nonce });
      if (verdict?.ok !== true || verdict.term === undefined) throw new Error("not created");
      return verdict.term;
    }),
  );
}

it("batches calls of one turn into few requests, each with its own result", async () => {
  const { store, sent } = await scene();
  const terms = await held(store, 100);
  expect(sent("/v1/store/create").length).toBeLessThanOrEqual(2);
  const stale = terms[7]!;
  await store.fenced.append(stale.fence, { after: 1, records: [step(0)] });
  const before = sent("/v1/store/append").length;
  const answers = await Promise.all(
    terms.map(({ fence }) => codeOf(store.fenced.append(fence, { after: 1, records: [step(1)] }))),
  );
  expect(sent("/v1/store/append").length - before).toBeLessThanOrEqual(2);
  expect(answers.filter((answer) => answer === "answered")).toHaveLength(99);
  expect(answers[7]).toBe("TAPE_NOT_HEAD");
});

it("sends a journal's appends one after the other, in order", async () => {
  const { store, behind, sent } = await scene();
  const [term] = await held(store, 1);
  const heads = await Promise.all(
    [1, 2, 3, 4].map((after) => store.fenced.append(term!.fence, { after, records: [step(after)] })),
  );
  expect(heads.map(({ head }) => head)).toEqual([2, 3, 4, 5]);
  expect(sent("/v1/store/append")).toHaveLength(4);
  const records = await behind.read.journal(tenant, { journal: term!.journal });
  expect(records.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
});

it("refuses only the bad item of a request", async () => {
  // A server that knows a stricter contract than this client: it refuses every request that has the bad one in it.
  const { store } = await scene((exchange) => (request) => {
    const bad = request.url === "/v1/store/append" && Buffer.from(request.body!).includes('"pos":666');
    const body = bad ? Buffer.from('{"batch":[{}]}') : request.body;
    return exchange({ ...request, ...(body === undefined ? {} : { body }) });
  });
  const terms = await held(store, 10);
  const answers = await Promise.all(
    terms.map(({ fence }, k) => codeOf(store.fenced.append(fence, { after: 1, records: [step(k === 3 ? 666 : k)] }))),
  );
  expect(answers).toEqual(terms.map((_, k) => (k === 3 ? "TAPE_BAD_INPUT" : "answered")));
});

it.each([
  ["too few", '{"results":[]}'],
  ["of another shape", '{"results":[{"ok":true,"head":"2","notes":0}]}'],
  ["with a field too many", '{"results":[{"ok":true,"head":2,"notes":0,"more":1}]}'],
  ["negative", '{"results":[{"ok":true,"head":-2,"notes":0}]}'],
])("results that are %s are not believed", async (_, text) => {
  const { store } = await scene((exchange) => async (request) => {
    const answer = await exchange(request);
    return request.url === "/v1/store/append" ? { ...answer, body: Buffer.from(text) } : answer;
  });
  const [term] = await held(store, 1);
  expect(await codeOf(store.fenced.append(term!.fence, { after: 1, records: [step(0)] }))).toBe("TAPE_BAD_RESPONSE");
});

it("carries out accepted items on close, and refuses the rest", async () => {
  const { store, behind } = await scene();
  const [term] = await held(store, 1);
  const append = (after: number) => store.fenced.append(term!.fence, { after, records: [step(after)] });
  const taken = [append(1), append(2), append(3)];
  const closing = store.close();
  expect(await codeOf(append(4))).toBe("TAPE_STORE_CLOSED");
  expect(await codeOf(store.read.run(tenant, "r"))).toBe("TAPE_STORE_CLOSED");
  expect((await Promise.all(taken)).map(({ head }) => head)).toEqual([2, 3, 4]);
  await closing;
  expect(await behind.read.journal(tenant, { journal: term!.journal })).toHaveLength(4);
});
