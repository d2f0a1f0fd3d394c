import { suggest } from "../../base/suggest.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { placeIn } from "../list-cursors.ts";
import { ifGiven, nameChecker } from "./arguments.ts";
import { checkList, checkObject, checkText, checkWhole } from "./entry.ts";

/** Checks of arguments that several reads share. */
export function filterChecks(limits: Limits) {
  const names = nameChecker(limits);
  const page = (filter: { limit?: number; run?: string }) => {
    checkObject("filter", filter);
    ifGiven(filter.limit, (limit) => checkWhole("limit", limit, 1));
    ifGiven(filter.run, (run) => names({ run }));
  };
  const nameList = (what: string, list: readonly string[] | undefined) =>
    ifGiven(list, (values) => {
      checkList(what, values);
      for (const value of values) names({ [what]: value });
    });
  const oneOf = (what: string, list: readonly string[] | undefined, known: readonly string[]) =>
    ifGiven(list, (values) => {
      nameList(what, values);
      const unknown = values.find((value) => !known.includes(value));
      if (unknown === undefined) return;
      const near = known.find((value) => value === unknown.toUpperCase()) ?? suggest(unknown, known);
      const hint = near === undefined ? "" : `; did you mean ${near}?`;
      const message = `${what} must be one of ${known.join(", ")}, not ${unknown.slice(0, 64)}${hint}`;
      throw new TapeError("TAPE_BAD_INPUT", message, { field: what });
    });
  const cursor = (given: string | undefined) =>
    ifGiven(given, (after) => {
      checkText("after", after, limits);
      placeIn(after);
    });
  return { names, page, nameList, oneOf, cursor };
}
