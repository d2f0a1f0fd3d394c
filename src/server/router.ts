import { TapeError } from "../model/errors.ts";
import { type RouteName, routes } from "../protocol/contract.ts";
import type { Route } from "../protocol/route.ts";

export interface RouteMatch {
  readonly route: Route & { readonly name: RouteName };
  readonly params: Readonly<Record<string, string>>;
  readonly query: string;
}

const table = routes.map((route) => ({ route, parts: route.path.split("/") }));
const plain = new Map<string, RouteMatch["route"]>(
  table.flatMap(({ route }) => (route.path.includes("{") ? [] : [[`${route.method} ${route.path}`, route] as const])),
);

/**
 * The route of a request; undefined: no such route. A fixed path takes precedence over one with a parameter. HEAD
 * returns the headers of a GET, but not of a stream.
 */
export function matchRoute(method: string, url: string): RouteMatch | undefined {
  if (method !== "HEAD") return matched(method, url);
  const found = matched("GET", url);
  return found?.route.stream === true ? undefined : found;
}

function matched(method: string, url: string): RouteMatch | undefined {
  const cut = url.indexOf("?");
  const path = cut < 0 ? url : url.slice(0, cut);
  const query = cut < 0 ? "" : url.slice(cut + 1);
  const fixed = plain.get(`${method} ${path}`);
  if (fixed !== undefined) return { route: fixed, params: {}, query };
  const segments = path.split("/");
  for (const { route, parts } of table) {
    if (route.method !== method || parts.length !== segments.length) continue;
    if (!parts.every((part, k) => (part.startsWith("{") ? segments[k] !== "" : part === segments[k]))) continue;
    const params = parts.flatMap((part, k) =>
      part.startsWith("{") ? [[part.slice(1, -1), decoded(segments[k]!)]] : [],
    );
    return { route, params: Object.fromEntries(params), query };
  }
  return undefined;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new TapeError("TAPE_BAD_INPUT", "the path is not valid percent-encoding", { field: "path" });
  }
}
