import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

interface Body {
  readonly stream?: boolean;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
}

/** What the fake answers: words, a call of a tool, or an error. */
export interface Reply {
  readonly text?: string;
  readonly call?: { readonly id: string; readonly name: string; readonly args: object };
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A server that speaks the chat protocol of OpenAI, whole and streamed: clients of frameworks talk to it. */
export class FakeOpenAi {
  readonly requests: Body[] = [];
  readonly #server: Server;

  constructor(reply: (body: Body, request: number) => Reply) {
    this.#server = createServer(async (request, response) => {
      let text = "";
      for await (const part of request.setEncoding("utf8")) text += part;
      const body = JSON.parse(text) as Body;
      this.requests.push(body);
      const answer = reply(body, this.requests.length);
      const { status = 200, headers = {} } = answer;
      const type = body.stream === true && status === 200 ? "text/event-stream" : "application/json";
      response.writeHead(status, { "content-type": type, ...headers });
      if (status !== 200) response.end(JSON.stringify({ error: { message: `status ${status}`, type: "fake" } }));
      else if (body.stream === true) response.end(streamOf(answer, this.requests.length));
      else response.end(JSON.stringify(completionOf(answer, this.requests.length)));
    });
  }

  async url(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const aboutOf = (request: number) => ({ id: `chat-${request}`, created: 1, model: "gpt-6" });
const finishOf = ({ call }: Reply): string => (call === undefined ? "stop" : "tool_calls");
const functionOf = (call: NonNullable<Reply["call"]>) => ({ name: call.name, arguments: JSON.stringify(call.args) });

function completionOf(reply: Reply, request: number): object {
  const { text = null, call } = reply;
  const tool_calls = call && [{ id: call.id, type: "function", function: functionOf(call) }];
  const message = { role: "assistant", content: text, ...(tool_calls && { tool_calls }) };
  return {
    ...aboutOf(request),
    object: "chat.completion",
    usage,
    choices: [{ index: 0, message, finish_reason: finishOf(reply) }],
  };
}

function streamOf(reply: Reply, request: number): string {
  const about = aboutOf(request);
  const { text = "", call } = reply;
  const deltas: object[] = [{ role: "assistant", content: "" }];
  for (const content of text.split(/(?<= )/).filter(Boolean)) deltas.push({ content });
  if (call !== undefined) {
    const { name, arguments: json } = functionOf(call);
    deltas.push({ tool_calls: [{ index: 0, id: call.id, type: "function", function: { name, arguments: "" } }] });
    for (const part of [json.slice(0, 4), json.slice(4)])
      deltas.push({ tool_calls: [{ index: 0, function: { arguments: part } }] });
  }
  const chunks = [
    ...deltas.map((delta) => [{ index: 0, delta, finish_reason: null }]),
    [{ index: 0, delta: {}, finish_reason: finishOf(reply) }],
  ].map((choices) => ({ ...about, object: "chat.completion.chunk", choices }));
  const last = { ...about, object: "chat.completion.chunk", choices: [], usage };
  return [...chunks.map((chunk) => JSON.stringify(chunk)), JSON.stringify(last), "[DONE]"]
    .map((data) => `data: ${data}\n\n`)
    .join("");
}
