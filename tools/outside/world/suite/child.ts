// A process of the tests that kill processes: it sends one message, or receives messages and writes them down.
import { appendFileSync } from "node:fs";
import { createWorld } from "durable-tape/world";
import { queueName, route, serve } from "./handler.ts";

const [role, file = "", mode] = process.argv.slice(2);
if (role === "send") {
  const world = createWorld();
  if (file === "started") await world.start();
  const { messageId } = await world.queue(queueName, { runId: "run" }, { idempotencyKey: "key" });
  console.log(messageId);
  setInterval(() => {}, 1_000); // until it is killed
} else {
  let handler: (request: Request) => Promise<Response> = async () => new Response(null, { status: 503 });
  const server = await serve((request) => handler(request));
  const world = createWorld({ baseUrl: server.url });
  handler = route(world, async ({ messageId, attempt }) => {
    appendFileSync(file, `${process.pid} ${messageId} ${attempt}\n`);
    if (mode === "hang") await new Promise(() => {});
  });
  await world.start();
  console.log("ready");
}
