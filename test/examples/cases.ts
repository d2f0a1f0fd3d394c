import * as agent from "../../examples/agent/agent.ts";
import * as approval from "../../examples/approval/agent.ts";
import * as many from "../../examples/import/agent.ts";
import type { Ledger } from "../../examples/ledger.ts";
import * as order from "../../examples/order/agent.ts";
import * as treasury from "../../examples/treasury/agent.ts";
import * as trip from "../../examples/trip/agent.ts";
import { until } from "../../examples/until.ts";
import type { GateDefinition, Runner, Tape, Workflow } from "../../src/exports/index.ts";

/** An example on its own fake world, and what must have happened in that world at the end. */
export interface Case {
  readonly name: string;
  build(world: Ledger): { workflow: Workflow<never, unknown>; runner: Runner };
  readonly input: unknown;
  readonly budget?: Readonly<Record<string, number>>;
  /** The signals to send, gate by gate. */
  readonly signals?: readonly { readonly gate: GateDefinition<never>; readonly value: unknown }[];
  readonly status: "COMPLETED" | "COMPENSATED";
  readonly outcome?: unknown;
  /** `kind subject` of each ledger entry, in order. */
  readonly world: readonly string[];
}

/** Erases the type of the input, as a registry does. */
const any = <I, O>(workflow: Workflow<I, O>): Workflow<never, unknown> =>
  workflow as unknown as Workflow<never, unknown>;

const signal = <T>(gate: GateDefinition<T>, value: T) => ({ gate: gate as GateDefinition<never>, value });

/** Signals each gate once it is open, bound to the effect call that it shows. */
export async function sendSignals(app: Tape, run: string, { signals = [] }: Case): Promise<void> {
  for (const { gate, value } of signals) {
    const open = await until(async () => (await app.gates.list({ run })).find(({ name }) => name === gate.name));
    await app.signal(run, gate, value as never, { binds: open.binds, key: gate.name });
  }
}

const cfoSignal = (approved: boolean) => [signal(treasury.cfo, { approved })];
const receipt = { id: "W-1", invoice: "sweep-2026-11-15" };
const skus = many.itemsOf(4).filter(({ price }) => price >= 0);

export const cases: readonly Case[] = [
  {
    name: "treasury",
    build(world) {
      const { treasury: workflow, runner } = treasury.treasuryOn(treasury.worldOn(world));
      return { workflow: any(workflow), runner };
    },
    input: { day: "2026-11-15" },
    signals: cfoSignal(true),
    status: "COMPLETED",
    outcome: { done: true, receipt },
    world: ["wire sweep-2026-11-15", "book sweep-2026-11-15"],
  },
  {
    name: "treasury, rejected by the CFO",
    build(world) {
      const { treasury: workflow, runner } = treasury.treasuryOn(treasury.worldOn(world));
      return { workflow: any(workflow), runner };
    },
    input: { day: "2026-11-15" },
    signals: cfoSignal(false),
    status: "COMPLETED",
    outcome: { done: false },
    world: [],
  },
  {
    name: "treasury, rejected by the books",
    build(world) {
      const { treasury: workflow, runner } = treasury.treasuryOn(treasury.worldOn(world, { closed: true }));
      return { workflow: any(workflow), runner };
    },
    input: { day: "2026-11-15" },
    signals: cfoSignal(true),
    status: "COMPENSATED",
    world: ["wire sweep-2026-11-15", "reverse sweep-2026-11-15"],
  },
  {
    name: "trip",
    build(world) {
      const { trip: workflow, runner } = trip.tripOn(trip.worldOn(world));
      return { workflow: any(workflow), runner };
    },
    input: { id: "t-1", car: "van", within: "1h" },
    signals: [signal(trip.confirmation, { agreed: true })],
    status: "COMPLETED",
    outcome: "booked",
    world: ["flight t-1", "hotel t-1", "van t-1", "booked t-1"],
  },
  {
    name: "trip, without a car",
    build(world) {
      const { trip: workflow, runner } = trip.tripOn(trip.worldOn(world, { rejected: ["van"] }));
      return { workflow: any(workflow), runner };
    },
    input: { id: "t-1", car: "van", within: "1h" },
    status: "COMPLETED",
    outcome: "not available",
    world: ["flight t-1", "hotel t-1", "cancel hotel t-1", "cancel flight t-1", "not available t-1"],
  },
  {
    name: "order",
    build(world) {
      const { order: workflow, runner } = order.orderOn(order.worldOn(world));
      return { workflow: any(workflow), runner };
    },
    input: { id: "o-1", item: "book", price: 20 },
    status: "COMPLETED",
    outcome: { order: "o-1", parcel: "P-o-1" },
    world: ["reserve o-1", "charge o-1", "ship o-1"],
  },
  {
    name: "order, rejected by the carrier",
    build(world) {
      const { order: workflow, runner } = order.orderOn(order.worldOn(world, { rejected: ["piano"] }));
      return { workflow: any(workflow), runner };
    },
    input: { id: "o-2", item: "piano", price: 9_000 },
    status: "COMPENSATED",
    world: ["reserve o-2", "charge o-2", "refund o-2", "free o-2"],
  },
  {
    name: "approval",
    build(world) {
      const { expense: workflow, runner } = approval.approvalOn(approval.worldOn(world));
      return { workflow: any(workflow), runner };
    },
    input: { id: "e-1", who: "Ada", amount: 120 },
    signals: [signal(approval.lead, { approved: true, by: "Grace" })],
    status: "COMPLETED",
    outcome: { paid: true, why: "approved by Grace" },
    world: ["pay e-1"],
  },
  {
    name: "agent",
    build(world) {
      const { agent: workflow, runner } = agent.agentOn(agent.worldOn(world));
      return { workflow: any(workflow), runner };
    },
    input: { question: "When do you open? Mail Ada." },
    budget: { tokens: 5_000 },
    status: "COMPLETED",
    outcome: { answer: "Ada has a mail.", turns: 3 },
    world: ["mail the-run/1"],
  },
  {
    name: "import",
    build(world) {
      const { importAll: workflow, runner } = many.importOn(many.worldOn(world));
      return { workflow: any(workflow), runner };
    },
    input: { items: many.itemsOf(4), chunkSize: 2 },
    status: "COMPLETED",
    outcome: { imported: 3, rejected: ["sku-3"] },
    world: skus.map(({ sku }) => `put ${sku}`),
  },
];

/** The run id of the cases; one of them writes it into its world. */
export const runId = "the-run";

export const happened = (world: Ledger): string[] => world.entries().map(({ kind, subject }) => `${kind} ${subject}`);
