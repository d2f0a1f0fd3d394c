import type { WireRequest, WireResponse } from "../protocol/transport.ts";
import { lasting, textResponse } from "./response.ts";

const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Tape</title>
<h1>Tape</h1>
<p>This is an API for programs. Calls need a credential where credentials are required.</p>
<ul>
<li><a href="/openapi.json">/openapi.json</a>: description of every call
<li><a href="/healthz">/healthz</a>: health of the store, the reactors and the feed
<li><a href="/metrics">/metrics</a>: metrics for Prometheus
</ul>
<p>On a command line: <code>durable-tape runs --store &lt;this address&gt;</code>
<p>The dashboard is not built in this checkout: <code>npm run dashboard</code> builds it.
</html>
`;

/** A file of the dashboard. A file with a hash in its name never changes. */
export interface PageFile {
  readonly type: string;
  readonly body: Uint8Array;
  readonly lasting: boolean;
}

/** The dashboard's files by path; `/` is its page. undefined: no such file, or the dashboard is not built. */
export type Dashboard = (path: string) => Promise<PageFile | undefined>;

const nothingElse = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";
/** For the page above: no script, no style, no frame, no source at all. */
const bareRules = `default-src 'none'; ${nothingElse}`;
/** For the dashboard: its own files and calls to this server, no inline script, no inline style. */
const dashboardRules = (endpoint: string | undefined): string =>
  endpoint === undefined
    ? `default-src 'self'; ${nothingElse}`
    : `default-src 'self'; connect-src 'self' ${new URL(endpoint).origin}; ${nothingElse}`;

/**
 * The page that a browser shows at this address; undefined: the path is no page. Every caller may read it, and it is
 * the same on every server: the dashboard fetches all data with the user's credential.
 */
export async function pageResponse(
  { method, url, headers }: Pick<WireRequest, "method" | "url" | "headers">,
  dashboard: Dashboard | undefined,
  endpoint?: string,
): Promise<WireResponse | undefined> {
  if (method !== "GET" && method !== "HEAD") return undefined;
  const path = url.split("?", 1)[0]!;
  const file = path === "/" ? undefined : await dashboard?.(path);
  if (file !== undefined) return fileResponse(file, endpoint);
  if (path !== "/" && !isView(path, headers)) return undefined;
  const page = await dashboard?.("/");
  if (page !== undefined) return fileResponse(page, endpoint);
  if (path !== "/") return undefined;
  const bare = textResponse(html, "text/html; charset=utf-8");
  return { ...bare, headers: { ...bare.headers, ...rulesOf(bareRules) } };
}

/** Whether a browser opens a path within the dashboard. A program that calls an unknown route gets an error instead. */
function isView(path: string, { accept }: WireRequest["headers"]): boolean {
  return !/^\/(v\d+|assets)(\/|$)/.test(path) && (accept ?? "").includes("text/html");
}

/** Responses compressed once per file, not per request. */
const ready = new WeakMap<
  PageFile,
  { readonly endpoint: string | undefined; readonly response: Promise<WireResponse> }
>();

function fileResponse(file: PageFile, endpoint: string | undefined): Promise<WireResponse> {
  const known = ready.get(file);
  if (known !== undefined && known.endpoint === endpoint) return known.response;
  const { type, body } = file;
  const plain = textResponse("", type);
  const cache = file.lasting ? "public, max-age=31536000, immutable" : "no-cache";
  const headers = { ...plain.headers, "cache-control": cache, ...rulesOf(dashboardRules(endpoint)) };
  const response = lasting({ ...plain, headers, body });
  ready.set(file, { endpoint, response });
  return response;
}

const rulesOf = (rules: string): Record<string, string> => ({
  "content-security-policy": rules,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
});
