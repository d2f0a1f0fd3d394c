import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import type { PastClock } from "./past-clock.ts";
import { bound, done, type Scene, tenant } from "./scene.ts";

const million = 1_000_000;
export const question = "Pay invoice 2026-117 if the books have it.";
const model = "openai/gpt-6";
const text = (role: string, words: string) => ({ role, parts: [{ type: "text", text: words }] });
const calls = (...of: readonly (readonly [id: string, name: string, input: object])[]) => ({
  role: "assistant",
  parts: [
    { type: "reasoning", text: "The books come first." },
    ...of.map(([id, name, input]) => ({ type: "tool_call", id, name, input })),
  ],
});
const result = (id: string, output: unknown) => ({ role: "tool", parts: [{ type: "tool_result", id, output }] });

export const reserved = ({ journal }: Term, pos: number): NewRecord =>
  done("budget.reserved", { pos, rootRun: journal, amounts: amounts(2_400, 0.01) });

const amounts = (tokens: number, usd: number) => ({ tokens: tokens * million, calls: million, usd: usd * million });

/** The call of a turn and its charge, after its reservation at `pos`. */
function made(
  { journal }: Term,
  pos: number,
  data: object,
  usage: { input: number; output: number; usd: number },
): NewRecord[] {
  return [
    done("decision.made", { pos: pos + 1, model, usage: { ...usage, cached: 512 }, ...data }),
    done("budget.charged", {
      ...{ pos: pos + 2, reservation: pos, rootRun: journal, reserved: amounts(2_400, 0.01) },
      spent: amounts(usage.input + usage.output, usage.usd),
    }),
  ];
}

const lane = (number: number, name: string) => done("lane.opened", { lane: number, name });
const effectOf = (pos: number, name: string, call: string, input: object, value: object): NewRecord[] => [
  done("effect.intended", {
    ...{ pos, name, semantics: "idempotent", dispatch: "inline", key: `key-${pos}`, argsHash: "h" },
    args: { call, input },
  }),
  done("effect.dispatched", { pos, attempt: 1, sendWithinMs: 10_000 }),
  done("effect.settled", { pos, to: "CONFIRMED", reason: "returned", value }),
];

const first = {
  name: "treasurer 1",
  request: {
    messages: [text("system", "You are a careful treasurer."), text("user", question)],
    hash: "h1",
  },
  value: { message: calls(["call-1", "search", { invoice: "2026-117" }]), hash: "h1", finish: "tool-calls" },
};

const second = {
  name: "treasurer 2",
  request: { messages: [result("call-1", { amount: 1_240 })], before: { messages: 3, hash: "b1" }, hash: "h2" },
  value: { message: calls(["call-2", "pay", { invoice: "2026-117", amount: 1_240 }]), hash: "h2" },
};

/** A sub-agent that has not started. */
export const auditor = (id: string, pos: number): NewRecord =>
  done("child.started", { pos, id: `${id}.${pos}`, workflow: "auditor", input: {}, inputHash: "h" });

/** The first part of a chat, up to the question whether the second call is approved. `next`: what is written after it. */
export async function chatUpToApproval(
  scene: Scene,
  clock: PastClock,
  id: string,
  next: readonly NewRecord[] = [],
): Promise<{ term: Term; head: number }> {
  const budget = { tokens: 20_000 * million, usd: 2 * million };
  const lost = await scene.begin(id, "chat", "worker-a", { ttlMs: 30_000, budget, input: { message: question } });
  clock.elapse(400);
  await scene.write(lost, reserved(lost, 0));
  clock.elapse(31_000);
  const term = await scene.acquire({ run: id }, "worker-b", "expired", { reason: "timeout", ttlMs: 7_200_000 });
  clock.elapse(500);
  await scene.append(term, term.head, [
    done("budget.presumed", { pos: 0, rootRun: term.journal, amounts: amounts(2_400, 0.01) }),
  ]);
  clock.elapse(2_300);
  const payload = { tool: "treasury.pay", input: { invoice: "2026-117", amount: 1_240 }, call: "call-2" };
  const searched = await scene.append(term, term.head + 1, [
    ...made(term, 0, first, { input: 1_040, output: 96, usd: 0.0061 }),
    lane(1, "/treasury.search call-1"),
    ...effectOf(1_000_000, "treasury.search", "call-1", { invoice: "2026-117" }, { amount: 1_240 }),
    reserved(term, 3),
  ]);
  clock.elapse(1_900);
  const head = await scene.append(term, searched, [
    ...made(term, 3, second, { input: 1_220, output: 130, usd: 0.0074 }),
    lane(2, "/treasury.pay call-2"),
    done("gate.opened", { pos: 2_000_000, name: "tool approval", payload, binds: bound }),
    ...next,
  ]);
  return { term, head };
}

/** A chat whose first model call was lost in a crash and searched again, with an approval. */
export async function chatOf(scene: Scene, store: Store, clock: PastClock): Promise<void> {
  const id = "chat-7";
  const { term, head } = await chatUpToApproval(scene, clock, id);
  clock.elapse(9_000);
  await store.intake.signal(tenant, id, { name: "tool approval", value: { approved: true }, by: "ada", binds: bound });
  const third = {
    name: "treasurer 3",
    request: {
      messages: [result("call-2", { receipt: "r-117" })],
      ...{ before: { messages: 5, hash: "b2" }, hash: "h3", changed: ["treasurer 2"] },
    },
    value: { message: text("assistant", "Invoice 2026-117 is paid.\nReceipt: r-117."), hash: "h3", finish: "stop" },
  };
  const paid = await scene.append(term, head, [
    done("notes.taken", { through: 1 }),
    done("gate.resolved", { pos: 2_000_000, note: 1, to: "RECEIVED", value: { approved: true } }),
    ...effectOf(2_000_001, "treasury.pay", "call-2", { invoice: "2026-117", amount: 1_240 }, { receipt: "r-117" }),
    reserved(term, 6),
  ]);
  clock.elapse(1_200);
  await scene.append(term, paid, [
    ...made(term, 6, third, { input: 1_390, output: 24, usd: 0.0053 }),
    done("run.ended", { status: "COMPLETED", outcome: "paid", notesTaken: 1 }),
  ]);
}
