import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fencedHandler, fenceHeaders, TapeError } from "../../src/exports/index.ts";
import { type Result, race } from "./race.ts";

/** A service that stores a total; guarded, it accepts only the current owner. */
export async function overHttp(folder: string, guarded: boolean): Promise<Result> {
  let stored = 0;
  const put = async (request: Request): Promise<Response> => {
    stored = Number(await request.text());
    return new Response("stored");
  };
  const handle = guarded ? fencedHandler(put) : put;
  const server = createServer(async (incoming, outgoing) => {
    const headers = new Headers(incoming.headers as Record<string, string>);
    const body = Buffer.concat(await incoming.toArray());
    const response = await handle(new Request("http://service/", { method: "POST", headers, body }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  try {
    return await race(
      `sqlite:${join(folder, "tape.db")}`,
      async (lease, total) => {
        const response = await fetch(url, { method: "POST", headers: fenceHeaders(lease), body: String(total) });
        if (response.ok) return;
        const problem = (await response.json()) as { title: string };
        if (response.status === 412) throw new TapeError("TAPE_FENCED", problem.title);
        throw new Error(problem.title);
      },
      async () => stored,
    );
  } finally {
    server.close();
  }
}
