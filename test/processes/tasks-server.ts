import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { FakeCloudTasks } from "../../testkit/kit/fake-cloud-tasks.ts";

export interface TasksServer {
  readonly url: string;
  close(): void;
}

/** Our fake of Cloud Tasks behind HTTP, for processes. */
export async function serveTasks(tasks: FakeCloudTasks): Promise<TasksServer> {
  const server = createServer((request, response) => {
    void answer(tasks, request).then(
      async (result) => {
        response.writeHead(result.status, Object.fromEntries(result.headers));
        response.end(await result.text());
      },
      () => void request.socket.destroy(), // its answer is lost, or the sender is gone
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function answer(tasks: FakeCloudTasks, request: IncomingMessage): Promise<Response> {
  const headers = new Headers(
    Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const body = await text(request);
  return tasks.fetch(`http://127.0.0.1${request.url}`, { method: request.method ?? "GET", headers, body });
}
