import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { Child } from "../events/child.ts";
import { median, say } from "../work.ts";
import type { RateRequest } from "./before-process.ts";
import { type EndlessPart, rounded } from "./part.ts";
import type { StoreKind } from "./site.ts";

export interface BeforeSizes {
  readonly rounds: number;
  readonly sliceMs: number;
}

type Message = { readonly say: "ready" } | { readonly say: "rate"; readonly perSecond: number };

const requests = [
  { name: "stepsRatio1", what: "steps", runs: 1 },
  { name: "stepsRatio128", what: "steps", runs: 128 },
  { name: "startsRatio", what: "starts", runs: 128 },
] as const;
const suffix = { sqlite: "Sqlite", postgres: "Postgres" } as const;

const names = requests.flatMap(({ name }) =>
  Object.values(suffix).flatMap((store) => [`${name}${store}`, `${name}${store}Error`]),
);

/**
 * This code ÷ the code of an earlier commit (`--base`), in turns: steps a second of one run and of 128, and starts a
 * second of runs without labels. Both have a process and a store of their own on the same disk and server. A ratio is
 * the median of its rounds; its error is the standard error of their mean.
 */
export const before: EndlessPart<BeforeSizes> = {
  usual: { rounds: 21, sliceMs: 2_000 },
  small: { rounds: 2, sliceMs: 100 },
  figures: names,
  async measure(site, sizes) {
    const checkout = site.file("checkout");
    const root = join(import.meta.dirname, "../..");
    const git = (...args: string[]): void => void execFileSync("git", args, { cwd: root, stdio: "ignore" });
    git("worktree", "add", "--detach", checkout, site.base);
    try {
      symlinkSync(join(root, "node_modules"), join(checkout, "node_modules"));
      const program = "bench/endless/before-process.ts";
      mkdirSync(dirname(join(checkout, program)), { recursive: true });
      cpSync(join(root, program), join(checkout, program));
      const figures: Record<string, number> = {};
      for (const kind of site.stores) {
        const stores = [await site.store(kind), await site.store(kind)] as const;
        Object.assign(figures, await compare(kind, join(checkout, program), stores, sizes));
      }
      return figures;
    } finally {
      git("worktree", "remove", "--force", checkout);
    }
  },
};

async function compare(
  kind: StoreKind,
  earlier: string,
  [one, other]: readonly [string, string],
  { rounds, sliceMs }: BeforeSizes,
): Promise<Record<string, number>> {
  const folderOfChild = join(import.meta.dirname, "../events");
  const start = (program: string, store: string): Child<Message> =>
    new Child<Message>(relative(folderOfChild, program), [store]);
  const ours = start(join(import.meta.dirname, "before-process.ts"), one);
  const theirs = start(earlier, other);
  try {
    await Promise.all([ours.receive("ready"), theirs.receive("ready")]);
    const rate = async (child: Child<Message>, request: RateRequest): Promise<number> => {
      child.ask(request);
      return (await child.receive("rate")).perSecond;
    };
    const figures: Record<string, number> = {};
    for (const { name, what, runs } of requests) {
      const request = { what, runs, ms: sliceMs };
      const ratios: number[] = [];
      for (let round = 0; round <= rounds; round++) {
        // Each is first in turn: what warms up or fills up favours neither.
        const first = round % 2 === 0 ? ours : theirs;
        const a = await rate(first, request);
        const b = await rate(first === ours ? theirs : ours, request);
        if (round > 0) ratios.push(first === ours ? a / b : b / a); // the first round warms up
      }
      const key = `${name}${suffix[kind]}`;
      figures[key] = rounded(median(ratios));
      figures[`${key}Error`] = rounded(standardError(ratios));
      say(`${kind} ${what}, ${runs} at a time: ${figures[key]} ± ${figures[`${key}Error`]} of the earlier one`);
    }
    return figures;
  } finally {
    await Promise.all([ours.kill(), theirs.kill()]);
  }
}

function standardError(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, values.length - 1);
  return Math.sqrt(variance / values.length);
}
