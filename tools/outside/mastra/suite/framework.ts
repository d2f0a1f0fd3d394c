import { APICallError } from "@ai-sdk/provider";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { durableModel, durableTools } from "durable-tape/mastra";
import { z } from "zod";
import type { AgentSetup, Framework, ToolSpec } from "../../agents/framework.ts";
import { scriptedModel } from "./scripted-model.ts";

export const toolOf = ({ name, fields, execute, needsApproval }: ToolSpec) =>
  createTool({
    id: name,
    description: name,
    inputSchema: z.object(Object.fromEntries(fields.map((field) => [field, z.string()]))),
    execute: async (input) => await execute(input as Record<string, string>),
    requireApproval: (input) => needsApproval?.(input as Record<string, string>) ?? false,
  });

export const toolsOf = (tools: readonly ToolSpec[]) => Object.fromEntries(tools.map((one) => [one.name, toolOf(one)]));

export const mastra: Framework = {
  name: "Mastra",

  agent({ mode, script, tools, policies, model = {}, retries = false }: AgentSetup) {
    const kit = durableTools("treasury", toolsOf(tools), policies);
    const agent = new Agent({
      ...{ id: "treasurer", name: "Treasurer", instructions: "Pay what is due.", tools: kit.tools },
      model: durableModel(scriptedModel(script), { agent: "treasurer", ...model }),
      ...(retries && { maxRetries: 3 }),
    });
    return {
      effects: kit.effects,
      run: async (_tape, text) =>
        lastOf(mode === "generate" ? (await agent.generate(text)).steps : await streamed(agent, text)),
    };
  },

  team({ script, topics, tools }) {
    const local = Object.fromEntries(tools.map(({ name }) => [name, { local: true }]));
    const own = durableTools("expert", toolsOf(tools), local);
    const model = durableModel(
      scriptedModel(async (seen) => {
        if (seen.prompt !== "advise") return await script(seen);
        const calls = topics.map((topic) => ({ id: `c-${topic}`, tool: "consult", input: { prompt: topic } }));
        return seen.results.length === 0
          ? { calls }
          : { text: seen.results.map(({ id, output }) => `${id.slice(2)}: ${output}`).join(", ") };
      }),
      { agent: "expert", strict: true },
    );
    const expert = new Agent({ id: "expert", name: "Expert", instructions: "Advise.", model, tools: own.tools });
    const kit = durableTools("lead", { consult: expert });
    const lead = new Agent({ id: "lead", name: "Lead", instructions: "Ask the experts.", model, tools: kit.tools });
    return {
      effects: [...own.effects, ...kit.effects],
      run: async (_tape, text) => (await lead.generate(text)).text,
    };
  },

  providerError: (status, headers = {}) =>
    new APICallError({
      ...{ message: `status ${status}`, url: "https://models.test", requestBodyValues: {} },
      ...{ statusCode: status, responseHeaders: headers, responseBody: "{}" },
    }),

  isProviderError: (error, status) => APICallError.isInstance(error) && error.statusCode === status,
};

interface Step {
  readonly text: string;
}

/** The text of a result has the words of all steps. */
const lastOf = (steps: readonly Step[]): string => steps.at(-1)?.text ?? "";

export async function streamed(agent: Agent, text: string, options = {}): Promise<readonly Step[]> {
  const result = await agent.stream(text, options);
  let words = "";
  for await (const piece of result.textStream) words += piece;
  if (result.error !== undefined) throw result.error;
  const steps = await result.steps;
  if (words !== steps.map((step) => step.text).join("")) throw new Error(`streamed ${words}`);
  return steps;
}
