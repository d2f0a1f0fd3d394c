import { type Task, TaskState } from "@a2a-js/sdk";
import { DefaultRequestHandler } from "@a2a-js/sdk/server";
import { NotSent } from "durable-tape";
import { durableModel } from "durable-tape/ai";
import { expect, it } from "vitest";
import { message } from "./clients.ts";
import { ada, card, done, opened, shown, words } from "./opened.ts";

const answers = ["I look it up.", "It is 42."];
const scripted = (text: () => string) =>
  durableModel({
    ...{ specificationVersion: "v3", provider: "test", modelId: "test" },
    doGenerate: async () => ({
      ...{ content: [{ type: "text", text: text() }], finishReason: "stop", warnings: [] },
      usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
    }),
    doStream: () => Promise.reject(new Error("not used")),
  } as never) as unknown as { doGenerate(options: object): Promise<unknown> };

it("answers of models are messages, in their order; those of other lanes are not", async () => {
  let turn = 0;
  const model = scripted(() => answers[turn++]!);
  const aside = scripted(() => "aside");
  const { send } = await opened(async (tape) => {
    await model.doGenerate({ prompt: [] });
    await tape.lane("aside", () => aside.doGenerate({ prompt: [] }));
    await model.doGenerate({ prompt: [] });
  });
  expect(shown(await send("go"))).toEqual([done, undefined, [answers[1]], ["go", ...answers]]);
});

it("words of an attempt that was lost are replaced", async () => {
  let attempts = 0;
  const shownOnce = Promise.withResolvers<void>();
  const { handler } = await opened((tape) =>
    tape.decide(
      "say",
      async (decision) => {
        await decision.emit(++attempts === 1 ? "wrong " : "right ");
        if (attempts === 1) {
          await shownOnce.promise;
          throw new NotSent("lost");
        }
        await decision.emit("answer");
        return "right answer";
      },
      { retry: { attempts: 2, base: "1ms" } },
    ),
  );
  let text = "";
  for await (const { payload } of handler.sendMessageStream(message("go"), ada)) {
    if (payload?.$case !== "artifactUpdate" || payload.value.lastChunk) continue;
    const more = String(payload.value.artifact?.parts[0]?.content?.value);
    text = payload.value.append ? text + more : more;
    shownOnce.resolve();
  }
  expect([attempts, text]).toEqual([2, "right answer"]);
});

it("the handler has to have the executor's own events", async () => {
  const { executor } = await opened(async () => "never");
  const handler = new DefaultRequestHandler(card, executor.tasks, executor);
  const task = (await handler.sendMessage(message("go"), ada)) as Task;
  expect([task.status?.state, words(task.status?.message)]).toEqual([
    TaskState.TASK_STATE_FAILED,
    expect.stringContaining("TAPE_BAD_INPUT"),
  ]);
});
