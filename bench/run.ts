import { benchHandover } from "./handover.ts";
import { benchIdle } from "./idle.ts";
import { benchRemote } from "./remote.ts";
import { benchRuns } from "./runs.ts";
import { benchStore } from "./store.ts";

/** `npm run bench -- <name> [--json] [--seconds N]`: progress on stderr, figures on stdout, one JSON object last. */
const benches: Readonly<Record<string, (options: BenchOptions) => Promise<object>>> = {
  store: benchStore,
  runs: benchRuns,
  remote: benchRemote,
  handover: benchHandover,
  idle: benchIdle,
};

export interface BenchOptions {
  /** How long each mode is measured in all. */
  readonly seconds: number;
  readonly only: string | undefined;
}

const [name = "", ...flags] = process.argv.slice(2);
const bench = benches[name];
const flagValue = (flag: string): string | undefined => {
  const k = flags.indexOf(flag);
  return k < 0 ? undefined : flags[k + 1];
};
if (bench === undefined) {
  process.stderr.write(
    `usage: npm run bench -- ${Object.keys(benches).join("|")} [--json] [--seconds N] [--only sqlite|postgres]\n`,
  );
  process.exitCode = 2;
} else {
  const figures = await bench({ seconds: Number(flagValue("--seconds") ?? 6), only: flagValue("--only") });
  if (flags.includes("--json")) process.stdout.write(`${JSON.stringify(figures)}\n`);
  else console.dir(figures, { depth: null });
}
