import type { BaseMessage, StoredMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command } from "@langchain/langgraph";
import { MemorySaver } from "@langchain/langgraph-checkpoint";
import { encode } from "../base/codec.ts";
import type { TapeContext } from "../sdk/context.ts";
import { type GateDefinition, gate } from "../sdk/gate.ts";
import { storable } from "./results.ts";
import { TaskNames } from "./task-lane.ts";

/** What is used of a graph: `createAgent`, a compiled `StateGraph` and an `entrypoint` have it. */
export interface DurableGraph<I, S> {
  /** Executes the graph. */
  invoke(input: I, config: RunnableConfig): Promise<S>;
  /** Executes the graph and yields its states. */
  stream(input: I, config: RunnableConfig & { streamMode: "messages" | "values" | ["messages", "values"] }): unknown;
}

/** A state whose messages are as LangChain stores them; `mapStoredMessagesToChatMessages` restores them. */
export type StoredState<S> = S extends BaseMessage
  ? StoredMessage
  : S extends readonly (infer E)[]
    ? StoredState<E>[]
    : S extends object
      ? { [K in keyof S]: StoredState<S[K]> }
      : S;

/** Options of {@link interrupted}. */
export interface InterruptedOptions {
  /** Passed to the graph, with a thread and a checkpointer in memory of its own. */
  readonly config?: RunnableConfig;
  /** true: models stream, so that `followRun` shows their words. Default false. */
  readonly stream?: boolean;
}

/** The gate at which an interrupted graph waits. Its payload is the value of `interrupt`, its answer the result. */
export const graphInterrupt: GateDefinition<unknown> = gate("graph interrupt");

interface Interrupt {
  readonly id?: string;
  readonly value?: unknown;
}

/**
 * Runs a graph inside a workflow. Where it calls `interrupt`, the run waits at {@link graphInterrupt}, without a process.
 * Its state is rebuilt by replay, so it needs no checkpointer. Returns the final state.
 *
 * @example
 * const chat = workflow("chat", (tape, text: string) => interrupted(tape, graph, { messages: [{ role: "user", content: text }] }));
 */
export async function interrupted<I, S>(
  tape: TapeContext,
  graph: DurableGraph<I, S>,
  input: I,
  { config = {}, stream = false }: InterruptedOptions = {},
): Promise<StoredState<S>> {
  const configurable = { thread_id: tape.runId, ...config.configurable, __pregel_checkpointer: new MemorySaver() };
  const callbacks = [...((config.callbacks as unknown[] | undefined) ?? []), new TaskNames()];
  const own = { ...config, configurable, callbacks, signal: tape.abortSignal } as RunnableConfig;
  for (let next: I = input; ; ) {
    const state = stream ? await streamed(graph, next, own) : await graph.invoke(next, own);
    const { __interrupt__: found, ...rest } = state as { __interrupt__?: readonly Interrupt[] };
    if (found === undefined || found.length === 0) return storable(rest) as StoredState<S>;
    next = new Command({ resume: await answersTo(tape, found) }) as I;
  }
}

/** Several interrupts are answered one by one, in an order that does not depend on which task was faster. */
async function answersTo(tape: TapeContext, found: readonly Interrupt[]): Promise<unknown> {
  const open = found.map(({ id, value }) => ({ id, value: storable(value) }));
  if (open.length === 1) return await answerTo(tape, open[0]!.value);
  const answers: Record<string, unknown> = {};
  const sorted = open.map((one) => [encode(one.value ?? null), one] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [, { id, value }] of sorted) answers[id!] = await answerTo(tape, value);
  return answers;
}

async function answerTo(tape: TapeContext, payload: unknown): Promise<unknown> {
  const answer = await tape.gate(graphInterrupt, { payload });
  return answer.status === "received" ? answer.value : undefined;
}

/** The last state of a stream. */
async function streamed<I, S>(graph: DurableGraph<I, S>, input: I, config: RunnableConfig): Promise<S> {
  let state: unknown;
  const modes = await graph.stream(input, { ...config, streamMode: ["messages", "values"] });
  for await (const [mode, value] of modes as AsyncIterable<[string, unknown]>) if (mode === "values") state = value;
  return state as S;
}
