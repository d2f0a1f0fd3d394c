import { suggest } from "../../base/suggest.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { placeIn } from "../list-cursors.ts";
import { ifGiven, nameChecker } from "./arguments.ts";
import { checkList, checkObject, checkText, checkWhole } from "./entry.ts";

/** Checks that the arguments of several reads share. */
export function filterChecks(limits: Limits) {
  const names = nameChecker(limits);
  const page = (filter: { limit?: number; run?: string }) => {
    checkObject("filter", filter);
    ifGiven(filter.limit, (limit) => checkWhole("limit", limit, 1));
    ifGiven(filter.run, (run) => names({ run }));
  };
  const words = (what: string, list: readonly string[] | undefined) =>
    ifGiven(list, (given) => {
      checkList(what, given);
      for (const word of given) names({ [what]: word });
    });
  const oneOf = (what: string, list: readonly string[] | undefined, known: readonly string[]) =>
    ifGiven(list, (given) => {
      words(what, given);
      const strange = given.find((word) => !known.includes(word));
      if (strange === undefined) return;
      const near = known.find((word) => word === strange.toUpperCase()) ?? suggest(strange, known);
      const hint = near === undefined ? "" : `; did you mean ${near}?`;
      const message = `${what} is ${known.join(", ")}, not ${strange.slice(0, 64)}${hint}`;
      throw new TapeError("TAPE_BAD_INPUT", message, { field: what });
    });
  const cursor = (given: string | undefined) =>
    ifGiven(given, (after) => {
      checkText("after", after, limits);
      placeIn(after);
    });
  return { names, page, words, oneOf, cursor };
}
