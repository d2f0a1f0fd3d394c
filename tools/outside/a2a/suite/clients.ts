import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { SendMessageRequest, type StreamResponse, type Task } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";

export const transports = ["JSONRPC", "HTTP+JSON"] as const;
export type TransportName = (typeof transports)[number];

/** The SDK's own client, over one transport, in the name of a user. */
export async function clientOf(url: string, transport: TransportName, user = "ada"): Promise<Client> {
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set("x-user", user);
    return fetch(input, { ...init, headers });
  };
  const own =
    transport === "JSONRPC" ? new JsonRpcTransportFactory({ fetchImpl }) : new RestTransportFactory({ fetchImpl });
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [own],
    preferredTransports: [transport],
  });
  return new ClientFactory(options).createFromUrl(url);
}

let count = 0;

/** A message with these words, in the protocol's JSON; further fields override its own. */
export function message(text: string, more: { message?: object; configuration?: object } = {}): SendMessageRequest {
  const own = { messageId: `m-${++count}`, role: "ROLE_USER", parts: [{ text }], ...more.message };
  return SendMessageRequest.fromJSON({ ...more, message: own });
}

/** The result of a send, which has to be a task. */
export async function sent(client: Client, request: SendMessageRequest): Promise<Task> {
  const result = await client.sendMessage(request);
  if (!("status" in result)) throw new Error("a message came in place of a task");
  return result;
}

export async function eventsOf(stream: AsyncGenerator<StreamResponse>): Promise<StreamResponse[]> {
  const events: StreamResponse[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** Reads a task until it is as expected. The suite's own time-out ends the wait. */
export async function until(client: Client, id: string, isFit: (task: Task) => boolean): Promise<Task> {
  for (;;) {
    const task = await client.getTask({ id, tenant: "" });
    if (isFit(task)) return task;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A receiver of notifications. */
export async function webhook(): Promise<{ url: string; bodies: unknown[]; server: Server }> {
  const bodies: unknown[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => {
      text += chunk;
    });
    request.on("end", () => {
      bodies.push({ token: request.headers["x-a2a-notification-token"], body: JSON.parse(text) });
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, bodies, server };
}
