import type { Route } from "../protocol/route.ts";

/** Rows or items that are worth a call. */
const rowsOfCall = 50;

/** How many calls a call is worth beside itself: a page of a thousand rows keeps the store as busy as twenty small ones. */
export function extraCalls(
  route: Route,
  call: { readonly query?: unknown; readonly body?: unknown },
  page: number,
): number {
  const asked = { ...(call.query as object | undefined), ...(call.body as object | undefined) } as {
    readonly limit?: unknown;
  };
  const limited = route.query?.shape.limit !== undefined || asked.limit !== undefined;
  const rows = typeof asked.limit === "number" ? Math.min(asked.limit, page) : limited ? page : 0;
  const items = listsIn(asked).reduce((sum, list) => sum + list.length + carried(list), 0);
  return Math.floor(Math.max(rows, items) / rowsOfCall);
}

const listsIn = (held: unknown): readonly (readonly unknown[])[] =>
  typeof held === "object" && held !== null ? Object.values(held).filter(Array.isArray) : [];

/** Items of lists in a list: one call may carry those of many callers, each with a list of its own. */
function carried(list: readonly unknown[]): number {
  let sum = 0;
  for (const one of list) for (const inner of listsIn(one)) sum += inner.length;
  return sum;
}
