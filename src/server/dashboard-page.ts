import type { WireRequest, WireResponse } from "../protocol/transport.ts";
import { lasting, textResponse } from "./response.ts";

const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Tape</title>
<h1>Tape</h1>
<p>This address answers programs; what it is asked for needs a credential where credentials are required.</p>
<ul>
<li><a href="/openapi.json">/openapi.json</a>: every call, described
<li><a href="/healthz">/healthz</a>: how the store, the reactors and the feed are
<li><a href="/metrics">/metrics</a>: figures for Prometheus
</ul>
<p>On a command line: <code>durable-tape runs --store &lt;this address&gt;</code>
<p>The dashboard is not built in this checkout: <code>npm run dashboard</code> builds it.
</html>
`;

/** A file of the dashboard. One whose name holds its hash never changes. */
export interface PageFile {
  readonly type: string;
  readonly body: Uint8Array;
  readonly lasting: boolean;
}

/** The dashboard's files by path; `/` is its page. undefined: there is none, or it is not built. */
export type Dashboard = (path: string) => Promise<PageFile | undefined>;

const nothingElse = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";
/** Of the text above: no script, no style, no frame, nothing from anywhere. */
const bareRules = `default-src 'none'; ${nothingElse}`;
/** Of the dashboard: its own files and calls to this server, no inline script, no inline style. */
const dashboardRules = `default-src 'self'; ${nothingElse}`;

/**
 * What a person sees who opens the address in a browser; undefined: this is no page. It is told to anybody, and says
 * nothing that differs from one server to the next: all it shows it asks for with the person's credential.
 */
export async function pageResponse(
  { method, url, headers }: Pick<WireRequest, "method" | "url" | "headers">,
  dashboard: Dashboard | undefined,
): Promise<WireResponse | undefined> {
  if (method !== "GET" && method !== "HEAD") return undefined;
  const path = url.split("?", 1)[0]!;
  const file = path === "/" ? undefined : await dashboard?.(path);
  if (file !== undefined) return fileResponse(file);
  if (path !== "/" && !isView(path, headers)) return undefined;
  const page = await dashboard?.("/");
  if (page !== undefined) return fileResponse(page);
  if (path !== "/") return undefined;
  const bare = textResponse(html, "text/html; charset=utf-8");
  return { ...bare, headers: { ...bare.headers, ...rulesOf(bareRules) } };
}

/** An address within the dashboard, opened as a page: a program that asks for a call that does not exist is told so. */
function isView(path: string, { accept }: WireRequest["headers"]): boolean {
  return !/^\/(v\d+|assets)(\/|$)/.test(path) && (accept ?? "").includes("text/html");
}

/** Packed once for each file, not for each who asks. */
const ready = new WeakMap<PageFile, Promise<WireResponse>>();

function fileResponse(file: PageFile): Promise<WireResponse> {
  const known = ready.get(file);
  if (known !== undefined) return known;
  const { type, body } = file;
  const plain = textResponse("", type);
  const cache = file.lasting ? "public, max-age=31536000, immutable" : "no-cache";
  const headers = { ...plain.headers, "cache-control": cache, ...rulesOf(dashboardRules) };
  const answer = lasting({ ...plain, headers, body });
  ready.set(file, answer);
  return answer;
}

const rulesOf = (rules: string): Record<string, string> => ({
  "content-security-policy": rules,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
});
