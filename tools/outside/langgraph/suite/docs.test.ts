import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { FakeOpenAi } from "../../agents/fake-openai.ts";
import { PageExamples } from "../../examples.ts";

const suite = join(import.meta.dirname, "..");
const page = new PageExamples("langgraph.md", suite);
afterAll(() => page.remove());

/** What each example prints. */
const expected: Readonly<Record<string, readonly string[]>> = {
  langgraph: ["Invoice 7 is paid"],
  tools: [""],
  interrupts: ["{ amount: 120, verdict: 'yes' }"],
  checkpointer: ["{ n: 11 }", "{ likes: 'plums' }"],
};

describe("examples of docs/langgraph.md", () => {
  it("have names that are expected here", () => {
    expect(page.unnamed).toEqual([]);
    expect(page.named.map(({ name }) => name).sort()).toEqual(Object.keys(expected).sort());
  });

  it("have at most 20 lines for an agent", () => {
    const { source } = page.named.find(({ name }) => name === "langgraph")!;
    expect(source.trim().split("\n").length - 1).toBeLessThanOrEqual(20);
  });

  it("compile in strict mode, with the types of LangGraph", async () => expect(await page.faults()).toBe(""));

  it.each(Object.entries(expected))("%s runs and prints what it says", async (name, lines) => {
    const server = new FakeOpenAi((_, request) => {
      if (request === 1) return { call: { id: "s-1", name: "search", args: { invoice: "7" } } };
      if (request === 2) return { call: { id: "p-1", name: "pay", args: { invoice: "7" } } };
      return { text: "Invoice 7 is paid" };
    });
    try {
      expect(await page.linesOf(name, { OPENAI_API_KEY: "none", OPENAI_BASE_URL: await server.url() })).toEqual(lines);
    } finally {
      await server.close();
    }
  });
});
