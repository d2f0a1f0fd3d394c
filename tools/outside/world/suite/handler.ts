import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { MessageId, World } from "@workflow/world";

export const queueName = "__wkf_workflow_pay";

/** What a handler was called with. */
export interface ReceivedMessage {
  readonly message: unknown;
  readonly attempt: number;
  readonly messageId: MessageId;
}

type Fetch = (request: Request) => Promise<Response>;

/** A server of the fetch API on a port of its own. */
export async function serve(fetch: Fetch): Promise<{ readonly url: string; close(): void }> {
  const server = createServer(getRequestListener(fetch)).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, close };
}

/** The route of a world's workflows; `answer` is called with each message. */
export function route(
  world: World,
  answer: (received: ReceivedMessage) => Promise<undefined | { timeoutSeconds: number }>,
): Fetch {
  return world.createQueueHandler("__wkf_workflow_", (message, { attempt, messageId }) =>
    answer({ message, attempt, messageId }),
  );
}
