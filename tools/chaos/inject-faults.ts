import { systemClock } from "../../src/base/clock.ts";
import type { Random } from "../../src/base/random.ts";
import type { Fault, Injection } from "./fault.ts";

export interface InjectionOptions {
  readonly faults: readonly Fault[];
  readonly injections: readonly Injection[];
  readonly random: Random;
  readonly ms: number;
  /** Every initial injection happens, however long that takes. */
  readonly wholeOpening?: boolean;
  /** Resolves when no repair is in progress. */
  readonly repaired: () => Promise<void>;
}

/** On a busy machine a short round may end before every kind has taken effect. It is then extended by at most this. */
const graceMs = 60_000;

export const effectiveKinds = (injections: readonly Injection[]): Set<string> =>
  new Set(injections.filter(({ effective }) => effective).map(({ kind }) => kind));

/** Injects each fault in turn, then at random, until the time is over and each kind took effect; then waits for repairs. */
export async function injectFaults(options: InjectionOptions): Promise<void> {
  const { faults, injections, random, ms, repaired, wholeOpening = false } = options;
  const until = systemClock.mono() + ms;
  const ineffective = (): Fault[] => faults.filter(({ kind }) => !effectiveKinds(injections).has(kind));
  const opening = openingOf(faults);
  for (;;) {
    const now = systemClock.mono();
    if (now >= until && !(wholeOpening && opening.length > 0)) {
      // A fault whose repair is in progress may still turn out to have taken effect.
      if (ineffective().length > 0) await repaired();
      if (ineffective().length === 0 || now >= until + graceMs) break;
    }
    await systemClock.sleep(100 + random.int(300));
    const candidates = ineffective();
    // After the planned time only the kinds without effect so far are worth injecting.
    const fault = opening.shift() ?? draw(now >= until || random.float() < 0.5 ? candidates : [], faults, random);
    if (fault.exclusive === true) await repaired();
    await fault.inject();
  }
  await repaired();
  for (const fault of faults) await fault.cleanUp?.();
}

/** Every fault once, then again those with more than one initial injection. */
function openingOf(faults: readonly Fault[]): Fault[] {
  const rounds = Math.max(...faults.map(({ initial = 1 }) => initial));
  return Array.from({ length: rounds }, (_, k) => faults.filter(({ initial = 1 }) => initial > k)).flat();
}

function draw(preferred: readonly Fault[], all: readonly Fault[], random: Random): Fault {
  const from = preferred.length > 0 ? preferred : all;
  let at = random.float() * from.reduce((sum, { weight }) => sum + weight, 0);
  for (const fault of from) {
    at -= fault.weight;
    if (at < 0) return fault;
  }
  return from.at(-1)!;
}
