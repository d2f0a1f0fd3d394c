import type { Limits } from "../../model/limits.ts";
import type { ReadOps } from "../contract/store.ts";
import { ifGiven, nameChecker } from "./arguments.ts";
import { checkText } from "./entry.ts";

/** Cursors are the store's own text: the limit on names does not apply to them. */
const maxCursorLength = 512;

export function validatedFeed(read: ReadOps, limits: Limits): Pick<ReadOps, "feed" | "frontier"> {
  const names = nameChecker(limits);
  return {
    async feed(cursor, limit, tenant) {
      if (cursor !== undefined) checkText("cursor", cursor, { ...limits, nameLength: maxCursorLength });
      ifGiven(tenant, (of) => names({ tenant: of }));
      return read.feed(cursor, limit, tenant);
    },
    async frontier(tenant) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      return read.frontier(tenant);
    },
  };
}
