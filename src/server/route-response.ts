import { z } from "zod";
import type { RouteName } from "../protocol/contract.ts";
import type { Route } from "../protocol/route.ts";
import { jsonType } from "../protocol/transport.ts";
import { jsonResponse, textResponse, type WholeResponse } from "./response.ts";
import { rowsOfTurn } from "./turns.ts";

/** The response with a handler's result, encoded by its route. */
export function responseOf(route: Route & { readonly name: RouteName }, result: unknown): WholeResponse {
  const appended = route.name === "store.append" ? appendText(result as AppendResults) : undefined;
  if (appended !== undefined) return textResponse(appended, jsonType);
  const json: unknown = z.encode(route.answer, result as never);
  if (route.type !== undefined) return textResponse(String(json), route.type);
  const ready = route.name !== "readyz" || (json as { status?: unknown }).status === "ok";
  return jsonResponse(json, ready ? 200 : 503);
}

interface AppendResults {
  readonly results: readonly { readonly ok: boolean; readonly head?: number; readonly notes?: number }[];
}

/** The usual response to the most frequent call, without the schema; undefined: an append was refused. */
function appendText({ results }: AppendResults): string | undefined {
  if (!results.every(({ ok, head, notes }) => ok && Number.isSafeInteger(head) && Number.isSafeInteger(notes)))
    return undefined;
  return `{"results":[${results.map(({ head, notes }) => `{"ok":true,"head":${head},"notes":${notes}}`).join(",")}]}`;
}

/** Up to this number of rows a response needs no turns. */
const fewRows = 16;

/** A long list in a response, and the response's other fields. */
interface LongList {
  readonly field: string;
  readonly rows: readonly unknown[];
  readonly others: object;
}

export function longListOf(result: unknown): LongList | undefined {
  if (typeof result !== "object" || result === null) return undefined;
  for (const [field, rows] of Object.entries(result)) {
    if (!Array.isArray(rows) || rows.length <= fewRows) continue;
    const { [field]: _rows, ...others } = result as Record<string, unknown>;
    return { field, rows, others };
  }
  return undefined;
}

/**
 * Encodes the response one slice of its list per turn: a thousand rows take as long as twenty small calls. The first
 * slice waits for a turn too, because the store may return the results of many calls together.
 */
export async function slicedResponse(
  { answer }: Route,
  { field, rows, others }: LongList,
  turn: () => Promise<void> | undefined,
): Promise<WholeResponse> {
  const texts: string[] = [];
  let before = "";
  for (let done = 0; done < rows.length; done += rowsOfTurn) {
    await turn();
    const slice = { ...others, [field]: rows.slice(done, done + rowsOfTurn) };
    const { [field]: written, ...rest } = z.encode(answer, slice as never) as Record<string, unknown>;
    texts.push(JSON.stringify(written).slice(1, -1));
    before = JSON.stringify(rest).slice(1, -1);
  }
  const fields = [...(before === "" ? [] : [before]), `${JSON.stringify(field)}:[${texts.join(",")}]`];
  return textResponse(`{${fields.join(",")}}`, jsonType);
}
