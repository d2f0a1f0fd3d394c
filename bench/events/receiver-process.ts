// A receiver over HTTP in a process of its own. It reads every body and keeps none.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type ReceiverMessage = { readonly say: "listens"; readonly url: string };

const server = createServer((request, response) => {
  request.resume();
  request.on("end", () => response.writeHead(204).end());
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.send?.({ say: "listens", url: `http://127.0.0.1:${port}/events` } satisfies ReceiverMessage);
});
