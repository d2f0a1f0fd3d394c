import type { createRunner, TapeContext } from "durable-tape";

type Effects = NonNullable<Parameters<typeof createRunner>[0]["effects"]>;

/** A turn of a scripted model: words, and calls of tools. */
export interface Turn {
  readonly text?: string;
  readonly calls?: readonly { readonly id: string; readonly tool: string; readonly input: Record<string, unknown> }[];
}

/** What a model reads, in no framework's shape. */
export interface Seen {
  /** The words of the user. */
  readonly prompt: string;
  /** Of tools, in their order, as text. */
  readonly results: readonly { readonly id: string; readonly output: string }[];
}

/** Decides by the conversation alone, as a model does: the same request gets the same answer. */
export type Script = (seen: Seen) => Turn | Promise<Turn>;

/** A tool that each framework makes in its own way. All of its fields are texts. */
export interface ToolSpec {
  readonly name: string;
  readonly fields: readonly string[];
  execute(input: Record<string, string>): unknown;
  /** The framework's own setting, if it has one. */
  readonly needsApproval?: (input: Record<string, string>) => boolean;
}

export type Mode = "generate" | "stream";

export interface AgentSetup {
  readonly mode: Mode;
  readonly script: Script;
  readonly tools: readonly ToolSpec[];
  readonly policies: Readonly<Record<string, object>>;
  /** Options of the durable model. */
  readonly model?: object;
  /** true: the framework is set to retry model calls too, where it can. */
  readonly retries?: boolean;
}

/** The framework's own agent, made durable. */
export interface DurableAgent {
  readonly effects: Effects;
  run(tape: TapeContext, text: string): Promise<string>;
}

export interface TeamSetup {
  /** Each expert receives its topic and calls `read` and `nap`, which are local. */
  readonly script: Script;
  readonly topics: readonly string[];
  readonly tools: readonly ToolSpec[];
}

/** What the suite needs of a framework. */
export interface Framework {
  readonly name: string;
  /** true: the tools of one turn run one after the other. */
  readonly sequential?: boolean;
  agent(setup: AgentSetup): DurableAgent;
  /** Experts that work at the same time, by the framework's own means. Returns `<topic>: <answer>` for each, in order. */
  team(setup: TeamSetup): DurableAgent;
  /** An error as the client of a provider throws it. */
  providerError(status: number, headers?: Record<string, string>): Error;
  /** Whether it is of the class that users of the framework catch, with its status. */
  isProviderError(error: unknown, status: number): boolean;
}
