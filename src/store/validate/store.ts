import type { Store } from "../contract/store.ts";
import { nameChecker } from "./arguments.ts";
import { validatedClaim } from "./claim.ts";
import { checkObject } from "./entry.ts";
import { validatedFenced } from "./events.ts";
import { validatedIntake } from "./intake.ts";
import { validatedRead } from "./read.ts";
import { validatedRetention } from "./retention.ts";
import { validatedWithin } from "./within.ts";

/**
 * Validates every argument of every call first, so that the store behind it receives only what the contract allows.
 * Types are not enough: callers may be JavaScript. Encoded input (records, runs, values) is checked where it is
 * encoded, in entry.ts.
 */
export function validated(store: Store): Store {
  const { limits } = store;
  return {
    ...store,
    intake: validatedIntake(store.intake, limits),
    claim: validatedClaim(store.claim, limits),
    fenced: validatedFenced(store.fenced, limits),
    read: validatedRead(store.read, limits),
    ...(store.within && { within: validatedWithin(store.within, limits) }),
    ...(store.retention && { retention: validatedRetention(store.retention, limits) }),
    once(key) {
      checkObject("key", key);
      nameChecker(limits)({ tenant: key.tenant, key: key.key, hash: key.hash });
      return validatedIntake(store.once(key), limits);
    },
  };
}
