import { Agent, Runner, retryPolicies, setTracingDisabled } from "@openai/agents";
import { durableProvider, durableTools, tool } from "durable-tape/openai-agents";
import { APIError } from "openai";
import { z } from "zod";
import type { AgentSetup, Framework, ToolSpec } from "../../agents/framework.ts";
import { ScriptedModel } from "./scripted-model.ts";

setTracingDisabled(true);

const toolOf = ({ name, fields, execute, needsApproval }: ToolSpec) =>
  tool({
    name,
    description: name,
    parameters: z.object(Object.fromEntries(fields.map((field) => [field, z.string()]))),
    execute: (input: Record<string, string>) => execute(input),
    needsApproval: async (_context, input) => needsApproval?.(input as Record<string, string>) ?? false,
  });

/** The framework retries only where its settings say so. */
const eager = {
  retry: {
    maxRetries: 3,
    policy: retryPolicies.any(retryPolicies.networkError(), retryPolicies.httpStatus([429, 400])),
  },
};

/** The framework's own agent with durable tools. */
export function agentOf(tools: readonly ToolSpec[], policies: AgentSetup["policies"], modelSettings = {}) {
  const kit = durableTools("treasury", tools.map(toolOf), policies);
  const instructions = "Pay what is due.";
  return {
    agent: new Agent({ name: "Treasurer", instructions, tools: kit.tools, modelSettings }),
    effects: kit.effects,
  };
}

export const openaiAgents: Framework = {
  name: "OpenAI Agents",

  agent({ mode, script, tools, policies, model, retries = false }: AgentSetup) {
    const { agent, effects } = agentOf(tools, policies, retries ? eager : {});
    const runner = new Runner({
      modelProvider: durableProvider(new ScriptedModel(script), { agent: "treasurer", ...model }),
    });
    return {
      effects,
      run: async (_tape, text) => {
        if (mode === "generate") return (await runner.run(agent, text)).finalOutput!;
        return await streamed(runner, agent, text);
      },
    };
  },

  team({ script, topics, tools }) {
    const local = Object.fromEntries(tools.map(({ name }) => [name, { local: true }]));
    const own = durableTools("expert", tools.map(toolOf), local);
    const expert = new Agent({ name: "Expert", instructions: "Advise.", tools: own.tools });
    const consult = expert.asTool({ toolName: "consult", toolDescription: "Asks an expert" });
    const kit = durableTools("lead", [consult], { consult: { local: true } });
    const lead = new Agent({ name: "Lead", instructions: "Ask the experts.", tools: kit.tools });
    const model = new ScriptedModel(async (seen) => {
      if (seen.prompt !== "advise") return await script(seen);
      const { results } = seen;
      const calls = topics.map((topic) => ({ id: `c-${topic}`, tool: "consult", input: { input: topic } }));
      return results.length === 0
        ? { calls }
        : { text: results.map(({ id, output }) => `${id.slice(2)}: ${output}`).join(", ") };
    });
    const runner = new Runner({ modelProvider: durableProvider(model, { agent: "expert", strict: true }) });
    return {
      effects: [...own.effects, ...kit.effects],
      run: async (_tape, text) => (await runner.run(lead, text)).finalOutput!,
    };
  },

  providerError: (status, headers = {}) =>
    APIError.generate(status, { message: "no" }, `status ${status}`, new Headers(headers)),

  isProviderError: (error, status) => error instanceof APIError && error.status === status,
};

async function streamed(runner: Runner, agent: Agent, text: string): Promise<string> {
  const result = await runner.run(agent, text, { stream: true });
  let words = "";
  for await (const piece of result.toTextStream()) words += piece;
  await result.completed;
  if (!words.endsWith(result.finalOutput!)) throw new Error(`streamed ${words}`);
  return result.finalOutput!;
}
