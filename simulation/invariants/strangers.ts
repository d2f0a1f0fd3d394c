import { canary } from "../strangers.ts";
import { strangerTenant } from "../tenants.ts";
import { each, type Invariant, notApplicable } from "./judge.ts";

/** Using the numbers, names and secrets of another tenant gets the same response as using ones that do not exist. */
export const strangersGetNothing: Invariant = ({ strangers }) =>
  each(strangers, ({ what, got }) =>
    got === "nothing" || absent.has(got) ? [] : [`a stranger's "${what}" returned: ${got}`],
  );

/** Refusals that are also returned for what does not exist, or while the store is unreachable. */
const absent: ReadonlySet<string> = new Set([
  "TAPE_FENCED",
  "TAPE_RUN_NOT_FOUND",
  "TAPE_NOT_FOUND",
  "TAPE_LEASE_NOT_FOUND",
  "TAPE_STORE_UNREACHABLE",
  "TAPE_STORE_BUSY",
]);

/** A stranger's data appears nowhere in our tenant, and the stranger's tenant stays empty. */
export const strangersChangeNothing: Invariant = ({ feed, audit, effects, strangers }) => {
  if (strangers.length === 0) return notApplicable; // no stranger took part
  return each([...feed, ...audit, ...effects], (one) => {
    const text = leakIn(one);
    return text === undefined ? [] : [`a stranger's data is in ${text}`];
  });
};

const leakIn = (one: object): string | undefined => {
  const text = JSON.stringify(one, (_key, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
  return text.includes(canary) || text.includes(`"${strangerTenant}"`) ? text : undefined;
};
