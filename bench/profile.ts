import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Tape } from "../src/host/tape.ts";
import { createRunner } from "../src/sdk/workflow.ts";
import { startPostgres } from "../test/postgres/server.ts";
import type { BenchOptions } from "./run.ts";
import { stepsFor, ten } from "./ten.ts";
import { say } from "./work.ts";

const shown = 25;
const folder = new URL("profiles/", import.meta.url);

/** Where the process's time goes while runs of ten steps are driven, 1 and 128 at a time: kept as tables in bench/profiles. */
export async function benchProfile({ only, seconds }: BenchOptions): Promise<object> {
  const shares: Record<string, object> = {};
  if (only !== "postgres") {
    const place = await mkdtemp(join(tmpdir(), "tape-profile-"));
    shares.sqlite = await profile("sqlite", `sqlite:${join(place, "tape.db")}`, seconds);
    await rm(place, { recursive: true, force: true });
  }
  if (only !== "sqlite") {
    const server = await startPostgres({ major: 18, settings: {} });
    try {
      shares.postgres = await profile("postgres", server.url, seconds);
    } finally {
      await server.stop();
    }
  }
  return shares;
}

async function profile(store: string, url: string, seconds: number): Promise<Record<string, object>> {
  return { 1: await profileAt(1, store, url, seconds), 128: await profileAt(128, store, url, seconds) };
}

async function profileAt(
  runs: number,
  store: string,
  url: string,
  seconds: number,
): Promise<Readonly<Record<string, number>>> {
  const name = `${store}-${runs}`;
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [ten] }), concurrency: 500 });
  const session = new Session();
  session.connect();
  try {
    await stepsFor(app, runs, 2_000); // warm
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    await stepsFor(app, runs, seconds * 1_000);
    const self = selfTimes((await session.post("Profiler.stop")).profile);
    await mkdir(folder, { recursive: true });
    await writeFile(new URL(`${name}.md`, folder), tableOf(`${runs} at a time, ${store}`, self));
    say(`${name}: bench/profiles/${name}.md`);
    return Object.fromEntries([...self].slice(0, 5));
  } finally {
    session.disconnect();
    await app.close();
  }
}

interface Profile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: { functionName: string; url: string } }[];
  readonly samples?: readonly number[] | undefined;
  readonly timeDeltas?: readonly number[] | undefined;
}

/** Share of the time by function, largest first. */
function selfTimes({ nodes, samples = [], timeDeltas = [] }: Profile): Map<string, number> {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const times = new Map<string, number>();
  let total = 0;
  for (const [k, id] of samples.entries()) {
    const name = names.get(id)!;
    if (name.startsWith("post · node inspector")) continue; // the profiler itself
    const spent = timeDeltas[k] ?? 0;
    total += spent;
    times.set(name, (times.get(name) ?? 0) + spent);
  }
  return new Map([...times].sort((a, b) => b[1] - a[1]).map(([name, spent]) => [name, spent / total]));
}

function nameOf({ functionName, url }: { functionName: string; url: string }): string {
  const file = /\/(?:src|node_modules|bench)\/(.*)$/.exec(url)?.[1] ?? url.replace(/^node:/, "node ");
  return [functionName === "" ? "(anonymous)" : functionName, file].filter((part) => part !== "").join(" · ");
}

function tableOf(what: string, self: ReadonlyMap<string, number>): string {
  const rows = [...self].slice(0, shown).map(([name, share]) => `| ${(100 * share).toFixed(1)} % | ${name} |`);
  const rest = [...self.values()].slice(shown).reduce((sum, share) => sum + share, 0);
  const head = `# Ten-step runs, ${what}\n\nThe process's time by function, made by \`npm run bench -- profile\`.\n`;
  return `${[head, "| share | function |", "|---|---|", ...rows, `| ${(100 * rest).toFixed(1)} % | everything else |`].join("\n")}\n`;
}
