import type { Message } from "./conversation.ts";

/** Tokens and US dollars of a turn, as the decision has recorded them. */
export interface TurnUsage {
  /** Tokens that the model read. */
  readonly input: number;
  /** Tokens that the model wrote. */
  readonly output: number;
  /** Tokens of `input` that came from a cache. */
  readonly cached?: number;
  /** Tokens of `input` that went into a cache. */
  readonly cacheWrite?: number;
  /** Tokens of `output` that were reasoning. */
  readonly reasoning?: number;
  /** What the call cost, in US dollars. */
  readonly usd?: number;
}

/** An attempt that failed and was repeated. */
export interface FailedAttempt {
  readonly attempt: number;
  readonly at: number;
  readonly error: string;
}

/** The effect of a tool call. */
export interface ToolEffect {
  readonly pos: number;
  readonly name: string;
  /** As in the table of effects; the journal alone knows it up to the moment at which an item takes over. */
  readonly status: string;
  readonly reason?: string;
  readonly attempts: number;
  /** The fencing token of the last attempt. */
  readonly token?: string;
  readonly businessKey?: string;
  readonly startedAt: number;
  /** When its outcome was written, in milliseconds since 1970. */
  readonly settledAt?: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** A gate of the conversation: the approval of a tool call, or another question. */
export interface TurnGate {
  readonly pos: number;
  readonly name: string;
  readonly status: "OPEN" | "RECEIVED" | "TIMED_OUT" | "WITHDRAWN";
  readonly openedAt: number;
  /** When it was answered, in milliseconds since 1970. */
  readonly resolvedAt?: number;
  /** The fingerprint of the one effect that an approval is for. */
  readonly binds?: string;
  /** What the gate shows. */
  readonly payload?: unknown;
  /** The number in the inbox of the signal that it took. */
  readonly note?: number;
  readonly value?: unknown;
  /** Absent: the answer is no approval. */
  readonly approved?: boolean;
  /** The author of the signal. A reader of the inbox adds it. */
  readonly by?: string;
}

/** A child run of the conversation: a sub-agent with a journal of its own. */
export interface TurnChild {
  readonly pos: number;
  readonly run: string;
  readonly workflow: string;
  readonly status?: string;
}

/** A tool call that a turn requests, and what became of it. */
export interface TurnCall {
  /** The id of the call. */
  readonly id: string;
  readonly name: string;
  /** The input that the model has chosen. */
  readonly input: unknown;
  readonly effect?: ToolEffect;
  readonly approval?: TurnGate;
  readonly children?: readonly TurnChild[];
  /** What the model has read as its result. Absent: no later turn has sent one. */
  readonly output?: unknown;
}

/** One model call of a run. */
export interface Turn {
  readonly pos: number;
  readonly seq: number;
  /** The path of its lane; "": the workflow itself. */
  readonly lane: string;
  /** The name of the agent. */
  readonly agent: string;
  /** It belongs to a sub-agent that this tool call has started. */
  readonly under?: { readonly pos: number; readonly call: string };
  /** The name of the model. */
  readonly model?: string;
  /** The call is in progress, waits for its next attempt, or was lost and not repeated yet. */
  readonly open?: true;
  /** A fork has it from the source run, which has paid for it. */
  readonly kept?: true;
  readonly startedAt?: number;
  /** When it was recorded; of an open one, when its latest attempt started. */
  readonly at: number;
  /** From the start of the attempt that succeeded to its record. */
  readonly latencyMs?: number;
  /** The messages that are new in its request. */
  readonly messages: readonly Message[];
  /** How many messages the request repeats. */
  readonly before: number;
  /** The settings of the request, such as its temperature. */
  readonly settings?: unknown;
  /** The names of the tools that the model could call. */
  readonly tools?: readonly string[];
  /** The fingerprint of the request. */
  readonly hash?: string;
  /** Code that replayed it sends another request now; the recorded answer stays. */
  readonly changed?: true;
  readonly answer?: Message;
  /** Why the model stopped. */
  readonly finish?: string;
  readonly error?: string;
  readonly usage?: TurnUsage;
  /** Calls of the model: the recorded one, failed attempts, and those lost with their term. */
  readonly attempts: number;
  readonly failures: readonly FailedAttempt[];
  /** Calls that were lost with their term and asked again. */
  readonly lost: number;
  /** What the lost calls were charged, by unit. */
  readonly presumed?: Readonly<Record<string, number>>;
  /** The fencing token under which it was recorded, and its holder. */
  readonly token: string;
  readonly owner?: string;
  /** Later holders that replayed it, the latest last. */
  readonly replayedBy: readonly string[];
  readonly calls: readonly TurnCall[];
  /** Gates and children after this turn that belong to none of its tool calls. */
  readonly gates?: readonly TurnGate[];
  readonly children?: readonly TurnChild[];
}

/** What a run has asked models so far. Turns that a fork has kept do not count: the source run has paid for them. */
export interface ConversationSums {
  /** Model calls that were answered. */
  readonly turns: number;
  readonly attempts: number;
  /** Calls whose answer was lost with a process. */
  readonly lost: number;
  /** Tokens that the models read. */
  readonly input: number;
  /** Tokens that the models wrote. */
  readonly output: number;
  /** Tokens of `input` that came from a cache. */
  readonly cached: number;
  /** Tokens of `output` that were reasoning. */
  readonly reasoning: number;
  /** Absent: no price was known. */
  readonly usd?: number;
  /** What lost calls were charged, by unit. It is not part of the tokens above. */
  readonly presumed: Readonly<Record<string, number>>;
  /** The names of the models. */
  readonly models: readonly string[];
}

/** The conversation of a run. */
export interface RunConversation {
  readonly turns: readonly Turn[];
  readonly sums: ConversationSums;
}
