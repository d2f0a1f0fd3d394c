/** What a suite counts. */
export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The totals in the last line of a program. A program that ends without them, or badly without a failure, has failed. */
export function totalsIn(output: string, code: number | null): Totals {
  const broken = { passed: 0, failed: 1, skipped: 0 };
  const line = output.trimEnd().split("\n").at(-1) ?? "";
  try {
    const { passed, failed, skipped } = JSON.parse(line) as Totals;
    if (![passed, failed, skipped].every(Number.isSafeInteger)) return broken;
    return { passed, failed: code !== 0 && failed === 0 ? 1 : failed, skipped };
  } catch {
    return broken;
  }
}

/** The sum of several suites. */
export const sumOf = (all: readonly Totals[]): Totals => ({
  passed: all.reduce((sum, { passed }) => sum + passed, 0),
  failed: all.reduce((sum, { failed }) => sum + failed, 0),
  skipped: all.reduce((sum, { skipped }) => sum + skipped, 0),
});

/** Ends a suite's program: its last line, and an exit code that is not 0 after a failure. */
export function finish(totals: Totals): void {
  process.stdout.write(`${JSON.stringify(totals)}\n`, () => process.exit(totals.failed > 0 ? 1 : 0));
}
