import { z } from "zod";
import type { RouteName } from "../protocol/contract.ts";
import type { Route } from "../protocol/route.ts";
import { jsonType } from "../protocol/transport.ts";
import { jsonResponse, textResponse, type WholeResponse } from "./response.ts";
import { rowsOfTurn } from "./turns.ts";

/** What a handler returned, as its route writes it. */
export function answerOf(route: Route & { readonly name: RouteName }, said: unknown): WholeResponse {
  const json: unknown = z.encode(route.answer, said as never);
  if (route.type !== undefined) return textResponse(String(json), route.type);
  const ready = route.name !== "readyz" || (json as { status?: unknown }).status === "ok";
  return jsonResponse(json, ready ? 200 : 503);
}

/** Rows that are written without a turn of their own. */
const fewRows = 16;

/** A list in an answer that takes a while to be written, and what else the answer says. */
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
 * Writes the answer a slice of its list in a turn: a thousand rows take as long as twenty small calls. The first slice
 * waits too, for what many calls asked of the store may come back together.
 */
export async function slicedAnswer(
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
