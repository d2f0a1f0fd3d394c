import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { AgentCard, Message, Role } from "@a2a-js/sdk";
import {
  type AgentExecutor,
  DefaultExecutionEventBusManager,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  type RequestContext,
  type User,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import { TapePushNotificationStore, TapeTaskStore, type TaskApp, tapeExecutor } from "durable-tape/a2a";
import express, { type Request } from "express";
import { scripted } from "./durable.ts";
import { PlainExecutor } from "./plain.ts";
import { directReply } from "./scenarios.ts";

/** `sdk`: executor and stores of the SDK; `stores`: its executor on Tape's stores; `tape`: tasks are runs. */
export type Kind = "sdk" | "stores" | "tape";

/** Executor, events and stores of one kind. */
function partsOf(kind: Kind, app: TaskApp) {
  if (kind === "tape") {
    const executor = tapeExecutor(app, scripted);
    return { executor, buses: executor.buses, tasks: executor.tasks, push: executor.pushConfigs };
  }
  const shared = { executor: new PlainExecutor(), buses: new DefaultExecutionEventBusManager() };
  return kind === "sdk"
    ? { ...shared, tasks: new InMemoryTaskStore(), push: new InMemoryPushNotificationStore() }
    : { ...shared, tasks: new TapeTaskStore(app), push: new TapePushNotificationStore(app) };
}

export function handlerOf(kind: Kind, app: TaskApp, card: AgentCard): DefaultRequestHandler {
  const { executor, buses, tasks, push } = partsOf(kind, app);
  const options = { validateInputModes: true };
  return new DefaultRequestHandler(
    card,
    tasks,
    withReplies(executor),
    buses,
    push,
    undefined,
    undefined,
    undefined,
    options,
  );
}

/** Messages that need no task are answered directly. */
const withReplies = (inner: AgentExecutor): AgentExecutor => ({
  execute: async (request: RequestContext, bus: ExecutionEventBus) => {
    const text = directReply(request.userMessage);
    if (text === undefined) return inner.execute(request, bus);
    const { contextId } = request;
    const data = Message.fromJSON({ messageId: crypto.randomUUID(), contextId, parts: [{ text }] });
    bus.publish({ kind: "message", data: { ...data, role: Role.ROLE_AGENT } });
  },
  cancelTask: (taskId, bus) => inner.cancelTask(taskId, bus),
});

/** The caller names itself: a real agent would check a token. */
const userBuilder = async (request: Request): Promise<User> => {
  const name = request.header("x-user") ?? "";
  return { isAuthenticated: name !== "", userName: name };
};

export interface AgentServer {
  readonly url: string;
  readonly server: Server;
}

/** An agent behind JSON-RPC and REST, on a port of the loopback. */
export async function serve(makeHandler: (card: AgentCard) => DefaultRequestHandler, port = 0): Promise<AgentServer> {
  const web = express();
  const server = createServer(web);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const requestHandler = makeHandler(cardOf(url));
  web.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  web.use("/rpc", jsonRpcHandler({ requestHandler, userBuilder, legacyCompat: { enabled: true } }));
  web.use("/rest", restHandler({ requestHandler, userBuilder }));
  return { url, server };
}

const cardOf = (url: string): AgentCard =>
  AgentCard.fromJSON({
    ...{ name: "scripted", description: "An agent that follows a script", version: "1.0.0" },
    supportedInterfaces: [
      { url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
      { url: `${url}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: ["text/plain", "application/json"],
    defaultOutputModes: ["text/plain", "application/json"],
    skills: [{ id: "script", name: "script", description: "follows a script", tags: ["test"] }],
  });
