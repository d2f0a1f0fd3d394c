import type { Liveness, Readiness } from "./process-health.ts";

/** What the pages show. */
export interface MetricsSource {
  readonly health: { live(): Promise<Liveness>; ready(): Promise<Readiness> };
  report(): Promise<Readonly<Record<string, unknown>>>;
  text(): Promise<string>;
}

/** Answers a request for `/livez`, `/readyz`, `/healthz` or `/metrics`; any other path gets 404. */
export type MetricsHandler = (request: Request) => Promise<Response>;

/** What a path of the port returns. */
interface Page {
  readonly status: number;
  readonly body: string;
  readonly type: string;
}

const json = (status: number, body: unknown): Page => ({
  status,
  body: `${JSON.stringify(body)}\n`,
  type: "application/json",
});

const pages: Readonly<Record<string, (metrics: MetricsSource) => Promise<Page>>> = {
  "/livez": async ({ health }) => {
    const status = await health.live();
    return json(status === "ok" ? 200 : 503, { status });
  },
  "/readyz": async ({ health }) => {
    const status = await health.ready();
    return json(status === "ok" ? 200 : 503, { status });
  },
  "/healthz": async (metrics) => json(200, await metrics.report()),
  "/metrics": async (metrics) => ({
    status: 200,
    body: await metrics.text(),
    type: "text/plain; version=0.0.4; charset=utf-8",
  }),
};

/** The page of a path, for GET and HEAD. */
export async function metricsPage(metrics: MetricsSource, method: string, path: string): Promise<Page> {
  const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
  if (page === undefined) return json(404, { status: "not_found", paths: Object.keys(pages) });
  if (method !== "GET" && method !== "HEAD") return json(405, { status: "method_not_allowed" });
  return page(metrics);
}

/** The pages as a fetch-style handler, to be mounted in a server of your own. */
export function metricsHandler(metrics: MetricsSource): MetricsHandler {
  return async ({ method, url }) => {
    const { status, body, type } = await metricsPage(metrics, method, new URL(url).pathname);
    const headers = {
      "content-type": type,
      "cache-control": "no-store",
      ...(status === 405 && { allow: "GET, HEAD" }),
    };
    return new Response(method === "HEAD" ? null : body, { status, headers });
  };
}
