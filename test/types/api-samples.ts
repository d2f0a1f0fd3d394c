import { createRunner, effect, gate, outcome, Tape, workflow } from "../../src/exports/index.ts";
import { inferred } from "./same.ts";

/** The sample workflow of the design, with an injected world; test/examples executes it. */

interface Wire {
  readonly account: string;
  readonly amount: number;
  readonly invoice: string;
}
interface Sent {
  readonly id: string;
}
interface Call {
  readonly idempotencyKey: string;
  readonly fencingToken?: bigint;
  readonly signal?: AbortSignal;
}
export interface SampleWorld {
  readonly bank: {
    wire(a: Wire, call: Call): Promise<Sent>;
    find(businessKey: string | undefined): Promise<Sent | undefined>;
    reverse(id: string, call: Call): Promise<void>;
  };
  readonly model: {
    plan(input: { day: string }): Promise<{
      plan: { account: string; amount: number };
      usage: Record<string, number>;
      why: string;
    }>;
  };
  readonly fetchRate: () => Promise<number>;
}

export const cfo = gate<{ approved: boolean; note?: string }>("cfo");

export function sampleOn({ bank, model, fetchRate }: SampleWorld) {
  const wire = effect(
    "bank.wire",
    async (a: Wire, fx) => bank.wire(a, { idempotencyKey: fx.key, fencingToken: fx.token, signal: fx.abortSignal }),
    {
      semantics: "non_idempotent",
      dispatch: "outbox",
      businessKey: (a) => a.invoice,
      observe: async (_a, fx) => {
        const w = await bank.find(fx.businessKey);
        return w ? outcome.confirmed(w) : outcome.absent();
      },
      compensate: async (_a, receipt, fx) => bank.reverse(receipt.id, { idempotencyKey: fx.key }),
      retry: { attempts: 5, base: "1s", cap: "60s" },
      timeout: "30s",
    },
  );

  const treasury = workflow("treasury", async (tape, input: { day: string }) => {
    const plan = await tape.decide("plan", async (d) => {
      const r = await model.plan(input);
      d.record({ model: "m-1", usage: r.usage, rationale: r.why });
      return r.plan;
    });
    const call = wire.with({ account: plan.account, amount: plan.amount, invoice: `sweep-${input.day}` });
    const answer = await tape.gate(cfo, { binds: call, timeout: "24h" });
    if (answer.status === "timeout" || !answer.value.approved) return { done: false };
    const receipt = await tape.effect(call);
    await tape.sleep("1h");
    const rate = await tape.step("rate", () => fetchRate());
    return { receipt, rate, at: tape.now(), id: tape.uuid() };
  });

  const buildRunner = () => createRunner({ workflows: [treasury], effects: [wire], connectors: [] });

  return { wire, treasury, buildRunner };
}

/** The sample program for embedded handles. A test passes its own Tape, in virtual time, instead of Tape.open. */
export async function program(app: Tape, { treasury }: Pick<Sample, "treasury">) {
  const options = { id: "treasury-2026-11-15", labels: {}, budget: { usd: 50 } };
  const run = await app.start(treasury, { day: "2026-11-15" }, options);
  await app.signal(run.id, cfo, { approved: true }, { key: "first" });
  const result = await run.result();
  if ("receipt" in result) inferred(result.receipt)<Sent>();
  const other = await app.start(treasury, { day: "2026-11-16" });
  await app.cancel(other.id, { reason: "not wanted" });
  const failure: unknown = await other.result().catch((error: unknown) => error);

  const kinds: string[] = [];
  for await (const record of app.journal(run.id)) kinds.push(record.kind);
  const fed: string[] = [];
  for await (const record of app.feed({})) {
    if (record.kind === "run.ended" && fed.push(record.cursor) === 2) break;
  }
  return {
    result,
    failure,
    kinds,
    fed,
    run: await app.runs.get(run.id),
    runs: await app.runs.list(),
    effects: await app.effects.list(),
    unknown: await app.effects.list({ status: "UNKNOWN" }),
    obligations: await app.obligations.list(),
    aged: await app.obligations.list({ status: "PENDING", minAge: "24h" }),
    timers: await app.timers.list({ run: run.id }),
  };
}

type Sample = ReturnType<typeof sampleOn>;

export const openEmbedded = (buildRunner: Sample["buildRunner"]): Promise<Tape> =>
  Tape.open({ store: "sqlite:./tape.db", runner: buildRunner() });
