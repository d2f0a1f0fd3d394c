/**
 * Tests that take too long for every run of the suite are sampled: a different part every day, and over time all of them.
 * `npm test` prints the day, and TAPE_TEST_DAY=2026-11-16 repeats the sample of that day.
 */
const dayMs = 86_400_000;

export function dayOf(env: NodeJS.ProcessEnv, now: Date): string {
  const day = env.TAPE_TEST_DAY;
  if (day === undefined || day === "") return now.toISOString().slice(0, 10);
  if (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(Date.parse(day))) {
    throw new Error(`TAPE_TEST_DAY is ${day}: write a day as in 2026-11-16`);
  }
  return day;
}

/** The day of this run, the same in all its processes even around midnight. */
export const sampleDay = dayOf(process.env, new Date());

/** TAPE_TEST_EVERY_BOUNDARY=1 selects everything, not one in `stride`. */
const strideOf = (stride: number): number => (process.env.TAPE_TEST_EVERY_BOUNDARY === "1" ? 1 : stride);

const numberOf = (day: string): number => Date.parse(day) / dayMs;

/** Selects one in `stride`, and every one within that many days. */
export const isSampled = (index: number, stride: number, day: string = sampleDay): boolean =>
  (index + numberOf(day)) % strideOf(stride) === 0;

/** One in `stride` of these, and at least one. */
export function sampleOf<T>(all: readonly T[], stride: number, day: string = sampleDay): T[] {
  const step = Math.min(strideOf(stride), all.length);
  return all.filter((_, index) => (index + numberOf(day)) % step === 0);
}
