// What the examples of agents and their tools use and do not show. Types only; nothing runs.
import type { LanguageModel, ToolLoopAgent as SdkAgent, Tool } from "ai";
import type { LanguageModelLike } from "../../../src/exports/ai.ts";
import type { Observation, Tape, TapeContext, Workflow } from "../../../src/exports/index.ts";
import type { McpConnection, McpTools } from "../../../src/exports/mcp.ts";

export { type ModelMessage, ToolLoopAgent } from "ai";
export { z } from "zod";
export interface Invoice {
  readonly invoice: string;
}
export declare const app: Tape;
export declare const tape: TapeContext;
export declare const runId: string;
export declare const binds: string;
export declare const chat: Workflow<never, string>;
export declare const settle: Workflow<string, string>;
export declare const researcher: Workflow<{ readonly topic: string }, string>;
export declare const agent: SdkAgent;
export declare function openai(model: string): LanguageModelLike & Exclude<LanguageModel, string>;
export declare const kit: { readonly tools: Record<string, Tool> };
export declare const search: Tool<{ readonly text: string }, string>;
export declare const pay: Tool<Invoice, string>;
export declare const observe: () => Promise<Observation>;
export declare const bank: { find(key: string): Promise<string | undefined> };
export declare const embeddings: {
  readonly modelId: string;
  readonly provider: string;
  readonly specificationVersion: string;
};
export declare const images: typeof embeddings;
export declare function isSignedIn(request: Request): Promise<boolean>;
export declare const connect: McpConnection;
export declare const tools: McpTools;
