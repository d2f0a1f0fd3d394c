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
  const items = Object.values(asked).reduce((sum: number, one) => sum + (Array.isArray(one) ? one.length : 0), 0);
  return Math.floor(Math.max(rows, items) / rowsOfCall);
}
