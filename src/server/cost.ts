import type { Route } from "../protocol/route.ts";

/** Rows or items that count as one call. */
const rowsOfCall = 50;

/** How many extra calls a call counts as: a page of a thousand rows costs the store as much as twenty small calls. */
export function extraCalls(
  route: Route,
  call: { readonly query?: unknown; readonly body?: unknown },
  page: number,
): number {
  const fields = { ...(call.query as object | undefined), ...(call.body as object | undefined) } as {
    readonly limit?: unknown;
  };
  const limited = route.query?.shape.limit !== undefined || fields.limit !== undefined;
  const rows = typeof fields.limit === "number" ? Math.min(fields.limit, page) : limited ? page : 0;
  const items = listsIn(fields).reduce((sum, list) => sum + list.length + nestedItems(list), 0);
  return Math.floor(Math.max(rows, items) / rowsOfCall);
}

const listsIn = (held: unknown): readonly (readonly unknown[])[] =>
  typeof held === "object" && held !== null ? Object.values(held).filter(Array.isArray) : [];

/** Items of lists in a list: one call may carry the items of many callers, each in its own list. */
function nestedItems(list: readonly unknown[]): number {
  let sum = 0;
  for (const item of list) for (const inner of listsIn(item)) sum += inner.length;
  return sum;
}
