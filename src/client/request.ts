import { z } from "zod";
import { CodecError } from "../base/codec.ts";
import { TapeError } from "../model/errors.ts";
import { contract, type RouteName } from "../protocol/contract.ts";
import type { Route } from "../protocol/route.ts";

/** The parts of a call before encoding; the route's type says which of them it has. */
export interface Parts {
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
}

/** An encoded call. */
export interface PreparedRequest {
  readonly method: string;
  readonly url: string;
  readonly body: string | undefined;
}

export const routeOf = (name: RouteName): Route => contract[name];

/** Refuses what the wire cannot carry, with the codes that the store itself would use. */
export function prepareRequest(name: RouteName, parts: Parts): PreparedRequest {
  const route = routeOf(name);
  const { method } = route;
  const params = encoded(name, route.params, parts.params) as Readonly<Record<string, string>> | undefined;
  const query = encoded(name, route.query, parts.query) as Readonly<Record<string, string | undefined>> | undefined;
  const body = encoded(name, route.body, parts.body);
  const path = route.path.replace(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(params?.[key] ?? ""));
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) if (value !== undefined) search.set(key, value);
  const url = search.size === 0 ? path : `${path}?${search}`;
  return { method, url, body: route.body === undefined ? undefined : JSON.stringify(body) };
}

function encoded(name: RouteName, schema: z.ZodType | undefined, value: unknown): unknown {
  if (schema === undefined) return undefined;
  try {
    const result = z.safeEncode(schema, value);
    if (result.success) return result.data;
    const [issue] = result.error.issues;
    const field = issue?.path.join(".") ?? "";
    throw new TapeError("TAPE_BAD_INPUT", `${name}: ${field} ${issue?.message}`.replace("  ", " "), { field });
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    throw new TapeError("TAPE_NOT_ENCODABLE", `${name}: ${error.message}`, {}, error);
  }
}

/** A response that does not match the contract is an error as a whole; no part of it is used. */
export function decoded(name: RouteName, json: unknown): unknown {
  let why: string;
  try {
    const result = z.safeDecode(routeOf(name).answer, json as never);
    if (result.success) return result.data;
    const [issue] = result.error.issues;
    why = `${issue?.path.join(".")} ${issue?.message}`;
  } catch (error) {
    why = error instanceof Error ? error.message : String(error);
  }
  throw badResponse(name, why);
}

export function badResponse(name: RouteName, why: string): TapeError {
  return new TapeError("TAPE_BAD_RESPONSE", `${name}: the response does not match the contract: ${why}`, {
    route: name,
  });
}
