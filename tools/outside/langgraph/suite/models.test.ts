import { setTimeout as delay } from "node:timers/promises";
import type { AIMessage, BaseMessage } from "@langchain/core/messages";
import { Annotation, MessagesAnnotation, Send, START, StateGraph } from "@langchain/langgraph";
import { createRunner, gate, openStore, Tape, type Workflow, workflow } from "durable-tape";
import { durableChat, interrupted } from "durable-tape/langgraph";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../src/base/random.ts";
import { open } from "./programs.ts";
import { ScriptedChat } from "./scripted-chat.ts";

describe("models", () => {
  it("outside of a run are refused with the reason", async () => {
    const model = durableChat(new ScriptedChat({ answer: () => ({ text: "hi" }) }));
    await expect(model.invoke("hello")).rejects.toThrow("TAPE_");
  });

  it("may be called concurrently, in one node and outside of a graph", async () => {
    const model = durableChat(new ScriptedChat({ answer: (messages) => ({ text: `re ${messages.at(-1)!.content}` }) }));
    const both = async (): Promise<string> => {
      const answers = await Promise.all(["a", "b"].map((text) => model.invoke(text)));
      return answers.map(({ content }) => content).join();
    };
    const graph = new StateGraph(Annotation.Root({ text: Annotation<string> }))
      .addNode("both", async () => ({ text: await both() }))
      .addEdge(START, "both")
      .compile();
    const flow = workflow("flow", async (tape, _: number) => [
      await both(),
      (await interrupted(tape, graph, { text: "" })).text,
    ]);
    const app = await open(createRunner({ workflows: [flow] }));
    expect(await (await app.start(flow, 1)).result()).toEqual(["re a,re b", "re a,re b"]);
  });

  it("keep their usage, their id and their calls through the journal, whole and streamed", async () => {
    const model = durableChat(
      new ScriptedChat({ answer: () => ({ text: "one two", calls: [{ id: "c", name: "t", args: { a: 1 } }] }) }),
    );
    const flow = workflow("flow", async (tape, stream: boolean) => {
      const one = async (): Promise<BaseMessage> => {
        if (!stream) return await model.invoke("hello");
        let whole: BaseMessage | undefined;
        for await (const chunk of await model.stream("hello"))
          whole = whole === undefined ? chunk : (whole as never as typeof chunk).concat(chunk);
        return whole!;
      };
      const { id, content, tool_calls, usage_metadata, response_metadata } = (await one()) as AIMessage;
      const found = {
        id,
        content,
        tool_calls,
        usage: (usage_metadata as { total_tokens: number } | undefined)?.total_tokens,
        finish: response_metadata.finish_reason,
      };
      seenByRun.push(JSON.parse(JSON.stringify(found)));
      await tape.gate(go);
    });
    const go = gate<boolean>("go");
    const seenByRun: Record<string, unknown>[] = [];
    for (const stream of [false, true]) {
      seenByRun.length = 0;
      const store = await openStore("memory:");
      const app = await Tape.open({ store, runner: createRunner({ workflows: [flow] }) });
      const run = await app.start(flow, stream, { id: "r" });
      while ((await run.status()) !== "WAITING") await delay(5);
      await app.signal("r", go, true);
      await run.result();
      await app.close();
      const [live, replayed] = seenByRun;
      expect(replayed).toEqual(live);
      expect(live).toMatchObject({ content: "one two", usage: 15, finish: "tool_calls" });
      expect(live!.tool_calls).toMatchObject([{ id: "c", name: "t", args: { a: 1 } }]);
      expect(live!.id).toMatch(/^run-/);
    }
  });
});

/** Each round has its seed: the lengths of local work, and with them the interleaving. */
const rounds = 200;

describe("parallel tasks with local work of unequal length", () => {
  it("never get each other's answers, also from a Send within a subgraph", { timeout: 600_000 }, async () => {
    let random = seededRandom(0);
    const model = durableChat(
      new ScriptedChat({ answer: (messages) => ({ text: `answer to ${messages.at(-1)!.content}` }) }),
    );
    const inner = new StateGraph(MessagesAnnotation)
      .addNode("ask", async ({ messages }) => {
        await delay(random.float() * 8); // local work whose length a replay does not repeat
        const first = await model.invoke(messages);
        await delay(random.float() * 8);
        return {
          messages: [
            first,
            await model.invoke([...messages, first, { role: "user", content: `again ${messages[0]!.content}` }]),
          ],
        };
      })
      .addEdge(START, "ask")
      .compile();
    const outer = new StateGraph(
      Annotation.Root({
        answers: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
        of: Annotation<string>,
      }),
    )
      .addNode("sub", async ({ of }) => {
        const { messages } = await inner.invoke({ messages: [{ role: "user", content: of }] as never });
        return {
          answers: [
            `${of}: ${messages
              .slice(1)
              .map(({ content }) => content)
              .join(" / ")}`,
          ],
        };
      })
      .addConditionalEdges(START, () => ["a", "b", "c"].map((of) => new Send("sub", { of })), ["sub"])
      .compile();
    const flow = workflow("flow", async (tape) => {
      const { answers } = await interrupted(tape, outer, { answers: [] } as never);
      await tape.sleep("1ms");
      return answers;
    });
    const expected = ["a", "b", "c"].map((of) => `${of}: answer to ${of} / answer to again ${of}`);
    let swapped = 0;
    let processes = 0;
    for (let seed = 1; seed <= rounds; seed++) {
      random = seededRandom(seed);
      const store = await openStore("memory:");
      // Each process dies after a while; the next one replays what it has recorded.
      for (let process = 0; ; process++) {
        const app = await Tape.open({
          store,
          runner: createRunner({ workflows: [flow as Workflow<undefined, unknown>] }),
        });
        const run = await app.start(flow as Workflow<undefined, unknown>, undefined, { id: "r" });
        processes += 1;
        const result = await Promise.race([run.result(), delay(6 + process * 8)]);
        await app.close();
        if (result === undefined) continue;
        if (JSON.stringify([...(result as string[])].sort()) !== JSON.stringify(expected)) swapped += 1;
        break;
      }
    }
    console.log(`${rounds} interleavings, ${processes} processes, ${swapped} swapped`);
    expect(swapped).toBe(0);
    expect(processes).toBeGreaterThan(rounds * 1.5);
  });
});
