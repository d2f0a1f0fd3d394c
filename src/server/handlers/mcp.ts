import { defined } from "../../base/defined.ts";
import { localApi } from "../../mcp/api.ts";
import { type HttpReply, handlePost } from "../../mcp/http.ts";
import { McpServer } from "../../mcp/mcp-server.ts";
import { tools } from "../../mcp/tools/index.ts";
import type { mcp as routes } from "../../protocol/routes/mcp.ts";
import type { Transport, WireRequest, WireResponse } from "../../protocol/transport.ts";
import type { Call, HandlersOf, ServerDeps } from "../handler-types.ts";
import { always } from "../response.ts";

/** Headers of the request that its inner calls carry: who calls, and under which id. */
const passedOn = ["authorization", "x-request-id"] as const;

/** Each tool calls this server again as the same caller: every check, bound and audit entry is that of the HTTP API. */
export function mcpHandlers(deps: ServerDeps): HandlersOf<typeof routes> {
  const { clock, random, log, service, exchange, forbidden } = deps;
  return {
    async mcp({ body: json }, who) {
      const { role, headers, signal } = who;
      const server = new McpServer({
        api: localApi(asCaller(exchange, who), { clock, random, log }),
        ...{ clock, log, tools, role, version: service.version },
        onForbidden: (tool, needs) => forbidden(who, `mcp ${tool}`, needs),
      });
      if (server.notifies(json)) who.waits(); // such a tool waits for a run
      return responseOf(await handlePost(server, { headers, json, signal }));
    },
  };
}

function asCaller(exchange: Transport, { headers, via, signal }: Call): Transport {
  const own = Object.fromEntries(
    passedOn.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  );
  return (request) =>
    exchange({
      ...request,
      headers: { ...request.headers, ...own },
      ...defined({ from: via.address }),
      signal: request.signal ?? signal,
    });
}

function responseOf({ status, type, body = "" }: HttpReply): WireResponse {
  const headers = { ...always, ...(type !== undefined && { "content-type": type }) };
  return { status, headers, body: typeof body === "string" ? new TextEncoder().encode(body) : bytesOf(body) };
}

async function* bytesOf(body: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const text of body) yield encoder.encode(text);
}

/** The protocol has streams of the server and sessions, which we do not: a client learns it by 405. */
export function refusedMethod({ method, url }: Pick<WireRequest, "method" | "url">): WireResponse | undefined {
  if (method === "POST" || url.split("?", 1)[0] !== "/mcp") return undefined;
  return { status: 405, headers: { ...always, allow: "POST" }, body: new Uint8Array() };
}
