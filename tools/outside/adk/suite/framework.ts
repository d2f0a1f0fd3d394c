import { BasePlugin, FunctionTool, LlmAgent, ParallelAgent, Runner, StreamingMode } from "@google/adk";
import { ApiError } from "@google/genai";
import type { TapeContext } from "durable-tape";
import { TapePlugin, TapeSessionService } from "durable-tape/adk";
import { z } from "zod";
import type { Framework, Mode, ToolSpec } from "../../agents/framework.ts";
import { ScriptedLlm } from "./scripted-llm.ts";

export const toolOf = ({ name, fields, execute, needsApproval }: ToolSpec) =>
  new FunctionTool({
    name,
    description: name,
    parameters: z.object(Object.fromEntries(fields.map((field) => [field, z.string()]))),
    execute: async (input) => await execute(input as Record<string, string>),
    requireConfirmation: async (input) => needsApproval?.(input as Record<string, string>) ?? false,
  });

/** The framework makes an event of an error of a model. Its plugins receive the error itself. */
class ModelErrors extends BasePlugin {
  last: Error | undefined;

  constructor() {
    super("model-errors");
  }

  override async onModelErrorCallback({ error }: { error: Error }): Promise<undefined> {
    this.last = error;
  }
}

/** One turn of the user; returns the text of each author's last event. */
export async function turn(
  tape: TapeContext,
  agent: LlmAgent | ParallelAgent,
  plugin: TapePlugin,
  text: string,
  { mode = "generate", session = "s" }: { readonly mode?: Mode; readonly session?: string } = {},
): Promise<Record<string, string>> {
  const errors = new ModelErrors();
  const sessionService = new TapeSessionService(tape);
  const runner = new Runner({ appName: "treasury", agent, plugins: [plugin, errors], sessionService });
  await sessionService.getOrCreateSession({ appName: "treasury", userId: "ada", sessionId: session });
  const runConfig = { streamingMode: mode === "stream" ? StreamingMode.SSE : StreamingMode.NONE };
  const last: Record<string, string> = {};
  let partial = "";
  const newMessage = { role: "user", parts: [{ text }] };
  for await (const event of runner.runAsync({ userId: "ada", sessionId: session, newMessage, runConfig })) {
    if (event.errorCode !== undefined) throw errors.last;
    const words = event.content?.parts?.map((part) => part.text ?? "").join("") ?? "";
    if (event.partial) partial += words;
    else if (words !== "") last[event.author ?? ""] = words;
  }
  const answer = last[agent.name] ?? "";
  if (mode === "stream" && partial !== "" && !partial.endsWith(answer)) throw new Error(`streamed ${partial}`);
  return last;
}

export const adk: Framework = {
  name: "ADK",
  sequential: true,

  agent({ mode, script, tools, policies, model = {} }) {
    const plugin = new TapePlugin(policies, { group: "treasury", model });
    const agent = new LlmAgent({
      ...{ name: "treasurer", model: new ScriptedLlm(script), instruction: "Pay what is due." },
      tools: tools.map(toolOf),
    });
    return {
      effects: plugin.effects,
      run: async (tape, text) => (await turn(tape, agent, plugin, text, { mode })).treasurer ?? "",
    };
  },

  team({ script, topics, tools }) {
    const plugin = new TapePlugin(Object.fromEntries(tools.map(({ name }) => [name, { local: true }])), {
      model: { strict: true, agent: "expert" },
    });
    const experts = topics.map((topic) => {
      const model = new ScriptedLlm(({ results }) => script({ prompt: topic, results }));
      return new LlmAgent({ name: topic, model, instruction: "Advise.", tools: tools.map(toolOf) });
    });
    const team = new ParallelAgent({ name: "team", subAgents: experts });
    return {
      effects: plugin.effects,
      run: async (tape, text) => {
        const answers = await turn(tape, team, plugin, text, { session: tape.runId });
        return topics.map((topic) => `${topic}: ${answers[topic]}`).join(", ");
      },
    };
  },

  providerError: (status, headers = {}) =>
    Object.assign(new ApiError({ message: `status ${status}`, status }), { headers }),

  isProviderError: (error, status) => error instanceof ApiError && error.status === status,
};
