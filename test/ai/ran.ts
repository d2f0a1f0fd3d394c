import { onTestFinished } from "vitest";
import type { JournalRecord } from "../../src/model/records.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import type { EffectDefinition } from "../../src/sdk/effect.ts";
import { type AnyWorkflow, createRunner, type Workflow, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";

export interface Ran {
  readonly tape: VirtualTape;
  readonly outcome: unknown;
  readonly status: string;
  readonly records: readonly JournalRecord[];
  readonly ms: number;
}

interface RunOptions {
  readonly effects?: readonly { readonly definition: EffectDefinition }[];
  readonly workflows?: readonly AnyWorkflow[];
  readonly budget?: Record<string, number>;
}

/** A run of this function in virtual time, until it has settled or waits for a client. */
export async function ran(run: (tape: TapeContext) => Promise<unknown>, options: RunOptions = {}): Promise<Ran> {
  const { tape, flow } = await opened(run, options);
  const from = tape.time.now;
  await tape.start(flow, undefined, { id: "run", ...(options.budget && { budget: options.budget }) });
  return { ...(await settled(tape)), ms: tape.time.now - from };
}

export async function opened(
  run: (tape: TapeContext) => Promise<unknown>,
  { effects = [], workflows = [] }: RunOptions = {},
): Promise<{ tape: VirtualTape; flow: Workflow<undefined, unknown> }> {
  const flow = workflow("flow", run as (tape: TapeContext, input: undefined) => Promise<unknown>);
  const runner = createRunner({ workflows: [flow, ...workflows], effects });
  const tape = await VirtualTape.open({ runner, log: "silent" });
  onTestFinished(() => tape.close());
  return { tape, flow };
}

export async function settled(tape: VirtualTape): Promise<Omit<Ran, "ms">> {
  const view = (await tape.settle()).find(({ id }) => id === "run")!;
  const records = await tape.store.read.journal(tape.tape.tenant, { run: "run" });
  return { tape, outcome: view.outcome, status: view.status, records };
}
