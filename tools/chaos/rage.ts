import { systemClock } from "../../src/base/clock.ts";
import type { Random } from "../../src/base/random.ts";
import type { Fault, Strike } from "./strike.ts";

export interface RageOptions {
  readonly faults: readonly Fault[];
  readonly strikes: readonly Strike[];
  readonly random: Random;
  readonly ms: number;
  /** Resolves when nothing is being mended. */
  readonly mended: () => Promise<void>;
}

/** On a busy machine a short round may be over before each kind has bitten: then it goes on, for at most so long. */
const graceMs = 60_000;

export const bittenKinds = (strikes: readonly Strike[]): Set<string> =>
  new Set(strikes.filter(({ bitten }) => bitten).map(({ kind }) => kind));

/** Plays each fault in turn, then by chance, until the time is over and each has bitten; then everything is mended. */
export async function rage({ faults, strikes, random, ms, mended }: RageOptions): Promise<void> {
  const until = systemClock.mono() + ms;
  const spared = (): Fault[] => faults.filter(({ kind }) => !bittenKinds(strikes).has(kind));
  const overture = overtureOf(faults);
  for (;;) {
    const now = systemClock.mono();
    if (now >= until) {
      // What still mends may yet turn out to have bitten.
      if (spared().length > 0) await mended();
      if (spared().length === 0 || now >= until + graceMs) break;
    }
    await systemClock.sleep(100 + random.int(300));
    const left = spared();
    // Late: only what has not bitten yet is worth the time.
    const fault = overture.shift() ?? draw(now >= until || random.float() < 0.5 ? left : [], faults, random);
    if (fault.alone === true) await mended();
    await fault.play();
  }
  await mended();
  for (const fault of faults) await fault.calm?.();
}

/** Each once, then those again that want to be played several times first. */
function overtureOf(faults: readonly Fault[]): Fault[] {
  const most = Math.max(...faults.map(({ first = 1 }) => first));
  return Array.from({ length: most }, (_, k) => faults.filter(({ first = 1 }) => first > k)).flat();
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
