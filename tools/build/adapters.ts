/** Subpaths whose code and declarations import a framework, which only their users have installed: an optional peer. */
export const adapters: readonly string[] = ["a2a", "adk", "langgraph", "mastra", "openai-agents", "world"];
