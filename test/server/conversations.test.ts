import { afterEach, describe, expect, it } from "vitest";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import { giveTokens, tokenOf } from "./scene.ts";
import { type Stage, stage } from "./stage.ts";

const tenant = "acme";
const open: Stage[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

const spent = (amounts: Record<string, number>): NewRecord[] => [
  { kind: "budget.reserved", data: { pos: 0, rootRun: 0, amounts } },
  {
    kind: "decision.made",
    data: { pos: 1, name: "clerk 1", model: "openai/gpt-6", value: "yes", usage: { input: 3, output: 4 } },
  },
  { kind: "budget.charged", data: { pos: 2, reservation: 0, rootRun: 0, spent: amounts, reserved: amounts } },
];

async function opened(options: Parameters<typeof stage>[0] = {}) {
  const one = await stage({ credentials: "required", tenant, ...options });
  open.push(one);
  const { store, server } = one;
  await giveTokens(store, tenant);
  await giveTokens(store, "other");
  const first = { owner: "w/1", label: "worker-a", reactor: "agent", ttlMs: 3_600_000, nonce: 7n };
  const begin = async (id: string, records: (journal: number) => NewRecord[]): Promise<void> => {
    const [made] = await store.intake.createRuns(tenant, [{ id, workflow: "w", input: 1 }], first);
    const { fence, journal } = (made as { term: Term }).term;
    const written = records(journal);
    if (written.length > 0) await store.fenced.append(fence, { after: 1, records: written });
  };
  const get = async (url: string, token = tokenOf(tenant, "reader")) => {
    const headers = { authorization: `Bearer ${token}` };
    const { status, body } = await server.exchange({ method: "GET", url, headers, from: "192.0.2.1" });
    return { status, json: JSON.parse(Buffer.from(body as Uint8Array).toString()) as Record<string, never> };
  };
  return { ...one, begin, get };
}

const ofRoot = (records: readonly NewRecord[], journal: number): NewRecord[] =>
  records.map(
    ({ kind, data }) => ({ kind, data: "rootRun" in data ? { ...data, rootRun: journal } : data }) as NewRecord,
  );

describe("GET /v1/runs/{id}/conversation", () => {
  it("returns turns with their owner, and pages by the number of a turn", async () => {
    const { begin, get } = await opened();
    await begin("chat", (journal) => ofRoot(spent({ tokens: 7_000_000, calls: 1_000_000 }), journal));
    const { status, json } = await get("/v1/runs/chat/conversation");
    expect(status).toBe(200);
    expect(json).toMatchObject({ run: "chat", turns: [{ agent: "clerk", owner: "worker-a", attempts: 1 }] });
    expect((await get("/v1/runs/chat/conversation?from=1&limit=1")).json).toMatchObject({ turns: [], from: 1 });
    expect((await get("/v1/runs/chat/conversation?limit=201")).json.code).toBe("TAPE_BAD_INPUT");
    expect((await get("/v1/runs/none/conversation")).json.code).toBe("TAPE_RUN_NOT_FOUND");
    expect(json).toMatchObject({ hidden: true, turns: [{ answer: { parts: [{ type: "text", text: "", cut: 3 }] } }] });
    expect(JSON.stringify(json)).not.toContain("yes");
    for (const role of ["starter", "worker", "operator", "admin"] as const) {
      const seen = (await get("/v1/runs/chat/conversation", tokenOf(tenant, role))).json;
      expect(seen.hidden, role).toBeUndefined();
      expect(seen, role).toMatchObject({ turns: [{ answer: { parts: [{ type: "text", text: "yes" }] } }] });
    }
    const stranger = await get("/v1/runs/chat/conversation", tokenOf("other", "reader"));
    expect(stranger.json.code).toBe("TAPE_RUN_NOT_FOUND");
  });
});

describe("GET /v1/model-usage", () => {
  it("returns what runs have spent, by their budgets, and the first model", async () => {
    const { begin, get } = await opened();
    await begin("a,b", (journal) => ofRoot(spent({ tokens: 7_000_000, calls: 1_000_000, usd: 20_000 }), journal));
    await begin("free", (journal) => ofRoot(spent({ tokens: 5_000_000, calls: 1_000_000 }), journal));
    await begin("none", () => []);
    for (let k = 0; k < 2; k++) {
      expect((await get("/v1/model-usage?of=a%252Cb,none,free,missing")).json).toEqual({
        runs: [
          { id: "a,b", calls: 1_000_000, tokens: 7_000_000, usd: 20_000, model: "openai/gpt-6" },
          { id: "free", calls: 1_000_000, tokens: 5_000_000, model: "openai/gpt-6" },
        ],
      });
    }
    expect((await get("/v1/model-usage?of=free", tokenOf("other", "reader"))).json).toEqual({ runs: [] });
    const many = Array.from({ length: 101 }, (_, k) => `r${k}`).join(",");
    expect((await get(`/v1/model-usage?of=${many}`)).json.code).toBe("TAPE_BAD_INPUT");
  });
});
