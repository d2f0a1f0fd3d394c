import { canary } from "../strangers.ts";
import { strangerTenant } from "../tenants.ts";
import { each, type Invariant, nothing } from "./judge.ts";

/** Whoever comes with the numbers, names and secrets of another tenant is told what one is told of things that are not there. */
export const strangersGetNothing: Invariant = ({ strangers }) =>
  each(strangers, ({ what, got }) =>
    got === "nothing" || absent.has(got) ? [] : [`a stranger's "${what}" came to: ${got}`],
  );

/** Refusals that are also told of what does not exist, and what everybody is told of a store that is away. */
const absent: ReadonlySet<string> = new Set([
  "TAPE_FENCED",
  "TAPE_RUN_NOT_FOUND",
  "TAPE_NOT_FOUND",
  "TAPE_LEASE_NOT_FOUND",
  "TAPE_STORE_UNREACHABLE",
  "TAPE_STORE_BUSY",
]);

/** Nothing of ours holds a word of theirs, and there is nothing of theirs. */
export const strangersChangeNothing: Invariant = ({ feed, audit, effects, strangers }) => {
  if (strangers.length === 0) return nothing; // nobody came who could have left a word
  return each([...feed, ...audit, ...effects], (one) => {
    const text = says(one);
    return text === undefined ? [] : [`a stranger's word is in ${text}`];
  });
};

const says = (one: object): string | undefined => {
  const text = JSON.stringify(one, (_key, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
  return text.includes(canary) || text.includes(`"${strangerTenant}"`) ? text : undefined;
};
