import { defined } from "../../base/defined.ts";
import type { Api } from "../api.ts";
import { numberAt, pageOf, placeOf } from "../paging.ts";

/** Turns of one request. A turn with its tool calls is long. */
const pageTurns = 20;

/** A page of the run's turns; the first one also has their sums. What the server hides from a role is hidden here. */
export async function conversationPage(api: Api, run: string, cursor: string | undefined): Promise<object> {
  const place = placeOf(cursor);
  const first = numberAt(place, 0);
  const found = await api.call("runs.conversation", { params: { id: run }, query: { from: first, limit: pageTurns } });
  const { turns, from, next, hidden, cut, status } = found;
  const { bars: _bars, ...sums } = found.sums;
  const rows = turns.map((turn, k) => ({ n: from + k, ...turn }));
  const others = { ...(cursor === undefined && { run, status, sums }), ...defined({ hidden, cut }) };
  const start = { ...place, after: String(from) };
  return pageOf(start, { field: "turns", rows, more: next !== undefined, behind: ({ n }) => String(n + 1), others });
}
