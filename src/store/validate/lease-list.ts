import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { LeaseFilter, ListOps } from "../contract/store.ts";
import { ifGiven } from "./arguments.ts";
import { checkFlag, checkText } from "./entry.ts";
import { filterChecks } from "./filters.ts";

export function validatedLeaseList(read: ListOps, limits: Limits): Pick<ListOps, "leases"> {
  const { names, page } = filterChecks(limits);
  return {
    async leases(tenant, filter = {}) {
      names({ tenant });
      page(filter);
      ifGiven(filter.held, (held) => checkFlag("held", held));
      checkLeaseFilter(filter, limits);
      return read.leases(tenant, filter);
    },
  };
}

/** Each name is a lookup, and all of them travel in one address. */
const maxLeaseNames = 100;

function checkLeaseFilter({ kind, names, prefix, above }: LeaseFilter, limits: Limits): void {
  const { oneOf, nameList } = filterChecks(limits);
  oneOf("kind", kind === undefined ? undefined : [kind], ["name"]);
  nameList("names", names);
  ifGiven(prefix, (text) => checkText("prefix", text, limits));
  ifGiven(above, (text) => checkText("above", text, limits));
  if ((names?.length ?? 0) > maxLeaseNames) {
    throw new TapeError("TAPE_TOO_LARGE", `at most ${maxLeaseNames} leases are listed by name`, { field: "names" });
  }
  if (kind === undefined && (names ?? prefix ?? above) !== undefined) {
    const message = 'only named leases are listed by name: set kind to "name"';
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "kind" });
  }
}
