import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { TapeError } from "../model/errors.ts";
import { type MetricsSource, metricsPage } from "./metrics-handler.ts";

/** Where a port listens. */
export interface MetricsAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** The setting that names it, for messages. */
  readonly setting: string;
}

/** A port that answers probes and scrapes. */
export interface MetricsPort {
  readonly url: string;
  stop(): Promise<void>;
}

/** Probes and a scraper or two: more connections than this are a mistake, and wait. */
const maxConnections = 64;
const timeoutMs = 10_000;

/** Parses PORT or HOST:PORT. Without a host only this machine reaches the port. */
export function metricsAddress(listen: string, setting: string): MetricsAddress {
  const [, host = "127.0.0.1", digits = ""] = /^(?:(.+):)?(\d{1,5})$/.exec(listen) ?? [];
  const port = Number(digits);
  if (digits !== "" && port <= 65_535) return { host: host.replace(/^\[(.*)\]$/, "$1"), port, setting };
  const message = `${setting} must be PORT or HOST:PORT, such as 127.0.0.1:9464, not ${listen.slice(0, 64)}`;
  throw new TapeError("TAPE_BAD_CONFIG", message, { listen: listen.slice(0, 64) });
}

/**
 * Serves the health and the metrics of this process. It needs no credential and has no names of tenants or runs; it
 * listens only on the given address.
 */
export async function openMetricsPort(
  metrics: MetricsSource,
  { host, port, setting }: MetricsAddress,
  log: Log,
): Promise<MetricsPort> {
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = "GET", url = "/" } = request;
    request.resume(); // a body is not read
    const { status, body, type } = await metricsPage(metrics, method, url.split("?", 1)[0]!);
    response.writeHead(status, { "content-type": type, "cache-control": "no-store" });
    response.end(method === "HEAD" ? undefined : body);
  };
  const timeouts = { headersTimeout: timeoutMs, requestTimeout: timeoutMs, keepAliveTimeout: timeoutMs };
  const server = createServer({ ...timeouts, maxHeaderSize: 8_192 }, (request, response) => {
    respond(request, response).catch((error: unknown) => {
      log("warn", "metrics.failed", { ...errorFields(error) });
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  server.maxConnections = maxConnections;
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TapeError("TAPE_BAD_CONFIG", `${setting}: ${why}`, { host, port }, error);
  }
  const { port: bound } = server.address() as AddressInfo;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${bound}`;
  log("info", "metrics.listening", { url });
  return {
    url,
    async stop() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
