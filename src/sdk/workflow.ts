import type { Duration } from "../base/duration.ts";
import { assertBuild } from "../model/build.ts";
import { TapeError } from "../model/errors.ts";
import { bindConnector, type Connector } from "./connector.ts";
import type { TapeContext, Workflow } from "./context.ts";
import type { EffectDefinition, RetryPolicy } from "./effect-types.ts";
import type { GateDefinition } from "./gate.ts";
import { type AnyObject, assertObject } from "./object-definition.ts";
import { assertQueue, type QueueDefinition } from "./queue.ts";
import { type Schema, schemaOf, validate } from "./schema.ts";
import { assertKnownKeys, assertName, booleanOr, durationOrThrow, functionOr, retryOf, shown } from "./validate.ts";

export type { Workflow } from "./context.ts";

/** Options of a workflow: input schema, version, retries. */
export interface WorkflowOptions<I> {
  /** Validates the input when a run is started. */
  readonly input?: Schema<I>;
  /** Recorded with each run; informational. Default none. */
  readonly version?: string;
  /** How often a run that throws is retried; default: never. */
  readonly retry?: RetryPolicy;
  /**
   * A process that makes no progress with a run for longer than this loses it, even if it still renews its lease.
   * Journal writes and `tape.progress` are progress; a body with a time-out may use its time. Longer than a third of
   * the TTL. Default: no limit.
   */
  readonly maxStall?: Duration;
  /** Cancels a run that has not ended this long after it began. Default: no deadline. */
  readonly deadline?: Duration;
  /**
   * How long an ended run is kept before the reactor `retention` archives and deletes it. Recorded when the run ends;
   * `tape.retention.workflows` wins over it. Default: the setting of the store's reactor, otherwise forever.
   */
  readonly retain?: Duration;
  /** The queue in which its runs wait for a slot, unless their start names another. Default: no queue. */
  readonly queue?: QueueDefinition;
  /** The key of a run in that queue. Default: the empty key. */
  readonly key?: (input: I) => string;
  /**
   * true: a run is driven only by processes of the build that drove it first, so that a deploy may change the code
   * freely. The runner needs a `build`. Default: every process drives it, and changed code needs `tape.patched`.
   */
  readonly pinned?: boolean;
}

/**
 * Defines a workflow: a name that every process knows it by, and the function that its runs execute.
 *
 * @throws TAPE_BAD_INPUT if the name, the function or an option is not valid.
 * @example
 * const hello = workflow("hello", async (tape, input: { name: string }) => tape.step("greet", () => `Hello, ${input.name}`));
 */
export function workflow<I, O>(
  name: string,
  run: (tape: TapeContext<NoInfer<I>>, input: I) => Promise<O> | O,
  options: WorkflowOptions<I> = {},
): Workflow<I, O> {
  assertName("a workflow", name);
  if (typeof run !== "function") {
    throw new TapeError("TAPE_BAD_INPUT", `workflow ${name} needs a function, not ${shown(run)}`);
  }
  const subject = `workflow ${name}`;
  const keys = ["input", "version", "retry", "maxStall", "deadline", "retain", "queue", "key", "pinned"];
  assertKnownKeys(subject, options, keys);
  const { input: schema, version, retry, queue, key, pinned } = options;
  schemaOf(subject, "input", schema);
  if (version !== undefined) assertName(`the version of ${subject}`, version);
  retryOf(subject, retry, 1);
  if (queue !== undefined) assertQueue(subject, queue);
  functionOr(subject, "key", key);
  if (key !== undefined && queue === undefined) {
    throw new TapeError("TAPE_BAD_INPUT", `${subject}: key needs a queue`, { field: "key" });
  }
  const { maxStall, deadline, retain } = options;
  const limits = {
    ...(maxStall !== undefined && { maxStallMs: wholeMs(subject, "maxStall", maxStall) }),
    ...(deadline !== undefined && { deadlineMs: wholeMs(subject, "deadline", deadline) }),
    ...(retain !== undefined && { retainMs: wholeMs(subject, "retain", retain) }),
  };
  booleanOr(subject, "pinned", pinned);
  const pin = pinned === true ? { pinned } : {};
  return { name, run, schema, version, retry: retry ?? {}, queue, key, ...limits, ...pin };
}

/** Whole milliseconds of a duration that is longer than nothing. */
export const wholeMs = (subject: string, field: string, value: Duration): number =>
  Math.ceil(durationOrThrow(subject, field, value, 1));

/** `start` and `spawn` take a definition, not its name and not the bare function. */
export function assertWorkflow(workflow: unknown): asserts workflow is Workflow<never, unknown> {
  const { name, run } = (workflow ?? {}) as Partial<Workflow<never, unknown>>;
  if (typeof workflow === "object" && typeof name === "string" && typeof run === "function") return;
  const message = `a workflow is what workflow("name", async (tape, input) => …) returns, not ${shown(workflow)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "workflow" });
}

/** A workflow without its types, as a registry stores it. */
export type AnyWorkflow = Omit<Workflow<never, unknown>, "schema"> & { readonly schema: Schema | undefined };

/** What a process can execute. */
export interface Runner {
  /** The workflows by name. */
  readonly workflows: ReadonlyMap<string, AnyWorkflow>;
  /** Only those that this process can call: an effect waits for a process that has its connector. */
  readonly effects: ReadonlyMap<string, EffectDefinition>;
  /**
   * Registers an effect that a run used although it was not registered, for the rest of this process's life. false: it
   * was registered already, or this process does not have its connector.
   */
  readonly register?: (definition: EffectDefinition) => boolean;
  /** Gates whose schemas are checked when a signal is sent by name: by the command line or over HTTP. */
  readonly gates?: ReadonlyMap<string, GateDefinition<unknown>>;
  /** Gates with a schema that runs of this process have opened, so that its reports can describe their values. */
  readonly openedGates?: Map<string, GateDefinition<unknown>>;
  /** Queues whose runs this process drives. */
  readonly queues?: ReadonlyMap<string, QueueDefinition>;
  /** The build of the code, to which runs of pinned workflows belong. */
  readonly build?: string;
}

/**
 * Collects what a process can execute. Register every effect: reactors find its `observe` and `compensate` here, even
 * long after the run that used it has ended.
 *
 * @throws TAPE_BAD_INPUT if two definitions have one name, or a connector is missing what its effects need.
 * @example
 * export const buildRunner = () => createRunner({ workflows: [treasury], effects: [wire], connectors: [bankConnector] });
 */
export function createRunner(parts: {
  readonly workflows: readonly AnyWorkflow[];
  readonly effects?: readonly { readonly definition: EffectDefinition }[];
  readonly connectors?: readonly Connector[];
  readonly gates?: readonly GateDefinition<unknown>[];
  /** Queues that only starts name; those of the workflows are included. */
  readonly queues?: readonly QueueDefinition[];
  readonly objects?: readonly AnyObject[];
  /** Names the code, such as a commit or an image tag. Pinned workflows need it. Default: TAPE_BUILD. */
  readonly build?: string | undefined;
}): Runner {
  assertKnownKeys("a runner", parts, ["workflows", "effects", "connectors", "gates", "queues", "objects", "build"]);
  const build = parts.build ?? (process.env.TAPE_BUILD || undefined);
  if (build !== undefined) assertBuild(parts.build === undefined ? "TAPE_BUILD" : "a runner", build);
  const { effects = [], connectors = [], gates = [], queues = [], objects = [] } = parts;
  for (const queue of queues) assertQueue("a runner", queue);
  for (const object of objects) assertObject(object);
  const handlers = objects.flatMap((object) => [...object.workflows.values()]);
  const workflows: readonly AnyWorkflow[] = [...parts.workflows, ...handlers];
  const used = workflows.flatMap(({ queue }) => (queue === undefined ? [] : [queue]));
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
    openedGates: new Map(),
    queues: byName("queue", [...new Set([...queues, ...used])]),
    ...(build !== undefined && { build }),
  };
}

function byName<T extends { readonly name: string }>(what: string, items: readonly T[]): ReadonlyMap<string, T> {
  const map = new Map<string, T>();
  for (const item of items) {
    if (map.has(item.name))
      throw new TapeError("TAPE_BAD_INPUT", `two ${what}s have the name ${item.name}`, { name: item.name });
    map.set(item.name, item);
  }
  return map;
}

/** Refuses an input that does not match the workflow's schema, if this process has the workflow. */
export async function assertInput(runner: Runner, workflow: string, input: unknown): Promise<void> {
  const checked = await validate(runner.workflows.get(workflow)?.schema, input);
  if ("value" in checked) return;
  throw new TapeError("TAPE_BAD_INPUT", `input of ${workflow}: ${checked.fault}`, { field: "input", workflow });
}

/** Refuses a value that does not match the gate's schema, if this process has the gate. */
export async function assertGateValue(runner: Runner, gate: string, value: unknown): Promise<void> {
  const checked = await validate(runner.gates?.get(gate)?.schema, value);
  if ("value" in checked) return;
  throw new TapeError("TAPE_BAD_GATE_VALUE", `${gate}: ${checked.fault}`, { gate });
}
