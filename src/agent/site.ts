import type { TapeContext } from "../sdk/context.ts";
import { currentSite } from "../sdk/current.ts";

/** The lane in which code executes, or its run: state that belongs to a sequence of operations is kept for this object. */
export const siteOf = (tape: TapeContext): object => currentSite()?.lane ?? tape;

/** State of a lane or a run, made when it is first needed. Nothing of it outlives the drive that the object belongs to. */
export function perSite<T>(make: () => T): (site: object) => T {
  const known = new WeakMap<object, { readonly state: T }>();
  return (site) => {
    const found = known.get(site);
    if (found !== undefined) return found.state;
    const state = make();
    known.set(site, { state });
    return state;
  };
}
