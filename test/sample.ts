/**
 * What is too long for every run of the suite is sampled: every day another part, and in the end all of it. `npm test`
 * prints the day, and TAPE_TEST_DAY=2026-11-16 takes the sample of that day again.
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

/** The day of this run: the same in all its processes, also around midnight. */
export const sampleDay = dayOf(process.env, new Date());

/** TAPE_TEST_EVERY_BOUNDARY=1 takes everything, not one in `stride`. */
const strideOf = (stride: number): number => (process.env.TAPE_TEST_EVERY_BOUNDARY === "1" ? 1 : stride);

const numberOf = (day: string): number => Date.parse(day) / dayMs;

/** One in `stride`, and as many days later every one. */
export const isSampled = (index: number, stride: number, day: string = sampleDay): boolean =>
  (index + numberOf(day)) % strideOf(stride) === 0;

/** One in `stride` of these, and one at least. */
export function sampleOf<T>(all: readonly T[], stride: number, day: string = sampleDay): T[] {
  const step = Math.min(strideOf(stride), all.length);
  return all.filter((_, index) => (index + numberOf(day)) % step === 0);
}
