import type { Task } from "@a2a-js/sdk";
import { gate } from "durable-tape";
import { expect, it } from "vitest";
import { message } from "./clients.ts";
import { ada, done, opened, shown, twoQuestions, waiting, words, working } from "./opened.ts";

it("a message that is sent again answers no second question", async () => {
  const { send } = await opened(twoQuestions);
  const { id } = await send("go");
  const answer = { messageId: "answer-1" };
  expect(shown(await send("a", id, answer))).toEqual([waiting, "second?", [], ["go", "first?", "a", "second?"]]);
  const again = send("a", id, answer); // it waits for what happens next
  expect(words((await send("b", id)).artifacts[0] as never)).toBe("a b");
  expect(words((await again).artifacts[0] as never)).toBe("a b");
});

it("of two answers at the same time one counts", async () => {
  const { app, send, get } = await opened(twoQuestions);
  const { id } = await send("go");
  await Promise.all(["x", "y"].map((text) => send(text, id).catch(() => {})));
  const signals = await app.store.read.journal(app.tenant, { run: `a2a/${id}` }, { inbox: true });
  expect(signals.filter(({ kind }) => kind === "signal.sent")).toHaveLength(1);
  expect(words((await get(id)).status?.message)).toBe("second?");
});

it("a task that waits for no message refuses it, and keeps nothing of it", async () => {
  const { handler, send, get } = await opened((tape) => tape.sleep("1h"));
  const request = message("go", { configuration: { returnImmediately: true } });
  const { id } = (await handler.sendMessage(request, ada)) as Task;
  await expect(send("hurry", id)).rejects.toThrow(/waits for no message/);
  expect((await get(id)).history.map(words)).toEqual(["go"]);
});

it("gates of operators are neither shown nor answered", async () => {
  const cfo = gate<{ approved: boolean }>("cfo");
  const { app, handler, send, get } = await opened(async (tape) => {
    const answer = await tape.gate(cfo, { payload: "secret" });
    return answer.status;
  });
  const { id } = (await handler.sendMessage(
    message("go", { configuration: { returnImmediately: true } }),
    ada,
  )) as Task;
  while ((await app.gates.list({ run: `a2a/${id}` })).length === 0)
    await new Promise((resolve) => setTimeout(resolve, 5));
  expect([(await get(id)).status?.state, (await get(id)).history.map(words)]).toEqual([working, ["go"]]);
  await expect(send("yes", id)).rejects.toThrow(/waits for no message/);
  expect(await app.gates.list({ run: `a2a/${id}` })).toHaveLength(1);
});

it("a value that does not fit is refused with the reason, and the task asks again", async () => {
  const schema = {
    "~standard": {
      ...{ version: 1 as const, vendor: "test" },
      validate: (value: unknown) => (typeof value === "number" ? { value } : { issues: [{ message: "a number" }] }),
    },
  };
  const amount = gate<number>("amount", { schema, forAgents: true });
  const { send } = await opened(
    async (tape) => {
      const answer = await tape.gate(amount, { payload: { currency: "EUR" } });
      return answer.status === "received" ? { twice: answer.value * 2 } : undefined;
    },
    { gates: [amount] },
  );
  const { id, status } = await send("go");
  expect(words(status?.message)).toEqual({ currency: "EUR" });
  const refused = await send("much", id);
  expect([refused.status?.state, words(refused.status?.message)]).toEqual([
    waiting,
    expect.stringContaining("a number"),
  ]);
  const task = await send("", id, { parts: [{ data: 21 }] });
  expect([task.status?.state, task.artifacts[0]?.parts[0]?.content?.value]).toEqual([done, { twice: 42 }]);
});
