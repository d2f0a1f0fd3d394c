import { createRunner, Tape } from "durable-tape";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { scripted } from "../agents/durable.ts";
import { handlerOf, type Kind, serve } from "../agents/serve.ts";
import { comparable } from "./plain.ts";

beforeAll(() => {
  console.info = console.warn = console.error = () => {}; // the SDK writes a line for each refusal
});

interface LegacyTask {
  readonly id: string;
  readonly status: { readonly state: string };
}

/** The same calls in the form of protocol 0.3: by their old names, without a version header. */
async function calls(kind: Kind, app: Tape): Promise<unknown> {
  const { url, server } = await serve((card) => handlerOf(kind, app, card));
  onTestFinished(() => void server.close());
  const call = async (method: string, params: object): Promise<LegacyTask> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const response = await fetch(`${url}/rpc`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    const { result, error } = (await response.json()) as { result: LegacyTask; error?: { code: number } };
    return error === undefined ? result : ({ code: error.code } as never);
  };
  const send = (text: string, taskId?: string) => {
    const parts = [{ kind: "text", text }];
    return call("message/send", {
      message: { kind: "message", messageId: text, role: "user", parts, ...(taskId && { taskId }) },
    });
  };
  const { id, status } = await send("input-required");
  const answer = await send("artifact-text", id);
  const open = await send("input-required once more");
  const cancelled = await call("tasks/cancel", { id: open.id });
  return [
    status.state,
    answer,
    await call("tasks/get", { id }),
    cancelled.status.state,
    await call("tasks/get", { id: "unknown" }),
  ];
}

it("clients of protocol 0.3 get from Tape's stores what they get from the SDK's", async () => {
  const app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [scripted] }), log: "silent" });
  onTestFinished(() => app.close());
  const expected = comparable(await calls("sdk", app));
  expect(expected).toMatchObject([
    "input-required",
    { status: { state: "completed" } },
    {},
    "canceled",
    { code: -32001 },
  ]);
  expect(comparable(await calls("stores", app))).toEqual(expected);
  expect(comparable(await calls("tape", app))).toEqual(expected);
});
