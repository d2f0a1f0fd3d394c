import { TapeError } from "../model/errors.ts";
import { bindConnector, type Connector } from "./connector.ts";
import type { TapeContext, Workflow } from "./context.ts";
import type { EffectDefinition, RetryPolicy } from "./effect-types.ts";
import type { GateDefinition } from "./gate.ts";
import { type Schema, schemaOf, validate } from "./schema.ts";
import { assertKnownKeys, assertName, retryOf, shown } from "./validate.ts";

export type { Workflow } from "./context.ts";

/** Options of a workflow: input schema, version, retries. */
export interface WorkflowOptions<I> {
  /** Checked when a run is started. */
  readonly input?: Schema<I>;
  /** Recorded with each run, for people. */
  readonly version?: string;
  /** A run that throws is driven again so often; default: not at all. */
  readonly retry?: RetryPolicy;
}

/**
 * @example
 * const hello = workflow("hello", async (tape, input: { name: string }) => tape.step("greet", () => `Hello, ${input.name}`));
 */
export function workflow<I, O>(
  name: string,
  run: (tape: TapeContext, input: I) => Promise<O> | O,
  options: WorkflowOptions<I> = {},
): Workflow<I, O> {
  assertName("a workflow", name);
  if (typeof run !== "function") {
    throw new TapeError("TAPE_BAD_INPUT", `workflow ${name} needs a function, not ${shown(run)}`);
  }
  const whose = `workflow ${name}`;
  assertKnownKeys(whose, options, ["input", "version", "retry"]);
  const { input: schema, version, retry } = options;
  schemaOf(whose, "input", schema);
  if (version !== undefined) assertName(`the version of ${whose}`, version);
  retryOf(whose, retry, 1);
  return { name, run, schema, version, retry: retry ?? {} };
}

/** What is handed to `start` and `spawn`: a definition, not its name and not the bare function. */
export function assertWorkflow(workflow: unknown): asserts workflow is Workflow<never, unknown> {
  const { name, run } = (workflow ?? {}) as Partial<Workflow<never, unknown>>;
  if (typeof workflow === "object" && typeof name === "string" && typeof run === "function") return;
  const message = `a workflow is what workflow("name", async (tape, input) => …) returns, not ${shown(workflow)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "workflow" });
}

/** A workflow whose types are gone, as a registry holds it. */
export type AnyWorkflow = Omit<Workflow<never, unknown>, "schema"> & { readonly schema: Schema | undefined };

/** What a process can execute. */
export interface Runner {
  readonly workflows: ReadonlyMap<string, AnyWorkflow>;
  /** Only those that can be carried out here: an effect whose connector is elsewhere waits for a process that has it. */
  readonly effects: ReadonlyMap<string, EffectDefinition>;
  /**
   * An effect that was used and is not among them: from now on the reactors of this process know it, until it ends. false:
   * it was known, or its connector is not here.
   */
  readonly register?: (definition: EffectDefinition) => boolean;
  /** Gates whose schemas are asked where a signal is sent by name alone: by the command line or over HTTP. */
  readonly gates?: ReadonlyMap<string, GateDefinition<unknown>>;
}

/**
 * Collects what a process can execute. Register every effect: reactors find its observer and inverse here, also long
 * after the run that used it.
 *
 * @example
 * export const buildRunner = () => createRunner({ workflows: [treasury], effects: [wire], connectors: [bank] });
 */
export function createRunner(parts: {
  readonly workflows: readonly AnyWorkflow[];
  readonly effects?: readonly { readonly definition: EffectDefinition }[];
  readonly connectors?: readonly Connector[];
  readonly gates?: readonly GateDefinition<unknown>[];
}): Runner {
  assertKnownKeys("a runner", parts, ["workflows", "effects", "connectors", "gates"]);
  const { workflows, effects = [], connectors = [], gates = [] } = parts;
  const byConnector = byName("connector", connectors);
  const definitions = byName(
    "effect",
    effects.map(({ definition }) => definition),
  );
  const connected = [...definitions].flatMap(([name, definition]) => {
    const known = bindConnector(definition, byConnector);
    return known === undefined ? [] : [[name, known] as const];
  });
  const known = new Map(connected);
  return {
    workflows: byName("workflow", workflows),
    effects: known,
    register(definition) {
      const found = known.has(definition.name) ? undefined : bindConnector(definition, byConnector);
      if (found !== undefined) known.set(definition.name, found);
      return found !== undefined;
    },
    gates: byName("gate", gates) as ReadonlyMap<string, GateDefinition<unknown>>,
  };
}

function byName<T extends { readonly name: string }>(what: string, items: readonly T[]): ReadonlyMap<string, T> {
  const map = new Map<string, T>();
  for (const item of items) {
    if (map.has(item.name))
      throw new TapeError("TAPE_BAD_INPUT", `two of the ${what}s are called ${item.name}`, { name: item.name });
    map.set(item.name, item);
  }
  return map;
}

/** Refuses what a workflow cannot begin with, where its schema is known. A workflow of elsewhere is asked there. */
export async function assertInput(runner: Runner, workflow: string, input: unknown): Promise<void> {
  const checked = await validate(runner.workflows.get(workflow)?.schema, input);
  if ("value" in checked) return;
  throw new TapeError("TAPE_BAD_INPUT", `input of ${workflow}: ${checked.fault}`, { field: "input", workflow });
}

/** Refuses a value that its gate would, where the gate is known. */
export async function assertGateValue(runner: Runner, gate: string, value: unknown): Promise<void> {
  const checked = await validate(runner.gates?.get(gate)?.schema, value);
  if ("value" in checked) return;
  throw new TapeError("TAPE_BAD_GATE_VALUE", `${gate}: ${checked.fault}`, { gate });
}
