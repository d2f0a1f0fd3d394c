import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { fileArchive } from "../../src/retention/file-archive.ts";
import { textLines } from "../../src/retention/read.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { RetentionOps } from "../../src/store/contract/retention.ts";
import { fill } from "../growth-fill.ts";
import { say } from "../work.ts";
import { type EndlessPart, type Figures, rounded } from "./part.ts";
import type { EndlessSite, StoreKind } from "./site.ts";

interface PruneSizes {
  /** Ended runs that are archived and deleted. */
  readonly runs: number;
  readonly kills: number;
  /** How long steps are counted without retention beside them. */
  readonly ms: number;
  readonly concurrent: number;
}

const program = fileURLToPath(new URL("./prune-process.ts", import.meta.url));

const ten = workflow("ten", async (tape, _input: number) => {
  for (let k = 0; k < 10; k++) await tape.step(`step-${k}`, () => ({ ok: true, value: "x".repeat(90), at: k }));
});

/** Ended runs are archived and deleted beside other work, by a process that is killed again and again. */
export const prune: EndlessPart<PruneSizes> = {
  usual: { runs: 1_000_000, kills: 50, ms: 15_000, concurrent: 32 },
  small: { runs: 4_000, kills: 2, ms: 500, concurrent: 8 },
  figures: [
    "pruneRunsPerSecond",
    "pruneStepsRatio",
    "pruneLost",
    "pruneRunsPerSecondPostgres",
    "pruneStepsRatioPostgres",
  ],
  async measure(site, sizes) {
    const figures: Record<string, number> = {};
    for (const kind of site.stores) {
      const runs = kind === "sqlite" ? sizes.runs : Math.ceil(sizes.runs / 10);
      const found = await measured(site, kind, { ...sizes, runs });
      const suffix = kind === "sqlite" ? "" : "Postgres";
      figures[`pruneRunsPerSecond${suffix}`] = found.rate;
      figures[`pruneStepsRatio${suffix}`] = found.ratio;
      figures.pruneLost = (figures.pruneLost ?? 0) + found.lost;
    }
    return figures as Figures;
  },
};

async function measured(
  site: EndlessSite,
  kind: StoreKind,
  { runs, kills, ms, concurrent }: PruneSizes,
): Promise<{ readonly rate: number; readonly ratio: number; readonly lost: number }> {
  const url = await site.store(kind);
  const folder = site.file(`archive-${kind}`);
  await fill(url, runs);
  const before = await digestsOf(url);
  await systemClock.sleep(6_000); // runs that ended just now may have neighbours that are not committed
  const earlier = await stepsFor(url, concurrent, ms / 2);
  const part = Math.ceil(runs / 2);
  // The first half beside steps, then the second under kills.
  const halted = new AbortController();
  const counting = stepsFor(url, concurrent, Number.POSITIVE_INFINITY, halted.signal);
  const started = performance.now();
  const first = retaining(url, folder, (done) => done >= part);
  const done = await first.ended;
  const rate = done / ((performance.now() - started) / 1_000);
  halted.abort();
  const beside = await counting;
  // On both sides of it, because a machine has other work that comes and goes.
  const alone = (earlier + (await stepsFor(url, concurrent, ms / 2))) / 2;
  let archived = done;
  for (let k = 0; k < kills; k++) {
    const share = Math.ceil((runs - part) / (kills + 1));
    archived += await retaining(url, folder, (count, elapsed) => count >= share || elapsed > 10_000).ended;
  }
  archived += await retaining(url, folder, () => false).ended;
  const lost = await lostOf(url, folder, before);
  say(
    `${kind}: ${rounded(rate, 0)} runs/s archived and deleted, steps/s ${rounded(alone, 0)} alone and ${rounded(beside, 0)} beside it; ` +
      `${kills} kills, ${archived} reported, ${lost} lost`,
  );
  return { rate: rounded(rate, 0), ratio: rounded(beside / alone), lost };
}

/** A retention process, killed when `isEnough` says so; resolves with the runs that it reported. */
function retaining(url: string, folder: string, isEnough: (runs: number, elapsedMs: number) => boolean) {
  const child: ChildProcess = spawn(process.execPath, [program, url, folder], { stdio: ["ignore", "pipe", "inherit"] });
  const started = performance.now();
  const lines = createInterface({ input: child.stdout! });
  const ended = (async () => {
    let runs = 0;
    for await (const line of lines) {
      runs = Number(line.split(" ")[0]);
      if (isEnough(runs, performance.now() - started)) child.kill("SIGKILL");
    }
    return runs;
  })();
  return { ended };
}

/** Steps a second of other runs, by this process. */
async function stepsFor(url: string, concurrent: number, ms: number, signal?: AbortSignal): Promise<number> {
  const runner = createRunner({ workflows: [ten] });
  await using app = await Tape.open({ store: url, runner, concurrency: 1_000, log: "silent", report: false });
  const started = performance.now();
  let steps = 0;
  const isCounting = (): boolean => performance.now() < started + ms && signal?.aborted !== true;
  await Promise.all(
    Array.from({ length: concurrent }, async (_, k) => {
      while (isCounting()) {
        await app.call(ten, k);
        steps += 10;
      }
    }),
  );
  return steps / ((performance.now() - started) / 1_000);
}

/** A hash of every record of each ended run, byte for byte, by the run's id. */
async function digestsOf(url: string): Promise<ReadonlyMap<string, string>> {
  const store = await openStore(url);
  const ops = store.retention!;
  try {
    const found = new Map<string, Digest>();
    const until = (await ops.identity()).now + 1;
    for (let after = { at: -1, journal: 0 }; ; ) {
      const { roots, next } = await ops.ended("default", after, until);
      for (let k = 0; k < roots.length; k += journalsAtOnce)
        await addJournals(
          ops,
          roots.slice(k, k + journalsAtOnce).map(({ journal }) => journal),
          found,
        );
      if (next === undefined) return closed(found);
      after = next;
    }
  } finally {
    await store.close();
  }
}

type Digest = ReturnType<typeof createHash>;
const journalsAtOnce = 300;

async function addJournals(ops: RetentionOps, journals: readonly number[], found: Map<string, Digest>): Promise<void> {
  const ids = new Map<number, string>();
  for (let after: { readonly journal: number; readonly seq: number } | undefined; ; ) {
    const page = await ops.records("default", journals, after === undefined ? {} : { after });
    for (const { journal, seq, body } of page) {
      if (seq === 1) ids.set(journal, (JSON.parse(body) as { id: string }).id);
      addRecord(found, ids.get(journal)!, seq, body);
    }
    const last = page.at(-1);
    if (last === undefined || page.more !== true) return;
    after = { journal: last.journal, seq: last.seq };
  }
}

function addRecord(found: Map<string, Digest>, run: string, seq: number, body: string): void {
  const digest = found.get(run) ?? createHash("sha256");
  found.set(run, digest.update(`${seq} ${body}\n`));
}

const closed = (found: ReadonlyMap<string, Digest>): Map<string, string> =>
  new Map([...found].map(([run, digest]) => [run, digest.digest("base64")]));

/** The text of the record as the archive's line has it. */
const bodyOf = (line: string): string => line.slice(line.indexOf('"data":') + '"data":'.length, -1);

/** Runs that are neither in the store nor, byte for byte, in the file that their tombstone names. */
async function lostOf(url: string, folder: string, before: ReadonlyMap<string, string>): Promise<number> {
  const store = await openStore(url);
  try {
    const archive = fileArchive(folder, { clock: systemClock, random: systemRandom });
    const byFile = new Map<string, Set<string>>();
    for (let above = ""; ; ) {
      const page = await store.read.archived("default", { above });
      for (const { id, archive: name } of page) byFile.set(name, (byFile.get(name) ?? new Set()).add(id));
      above = page.at(-1)?.id ?? "";
      if (above === "") break;
    }
    let found = 0;
    for (const [name, ids] of byFile) {
      const digests = new Map<string, Digest>();
      for await (const line of textLines(archive, name)) {
        if (!line.startsWith('{"type":"record"')) continue;
        const { run, seq } = JSON.parse(line) as { run: string; seq: number };
        addRecord(digests, run, seq, bodyOf(line));
      }
      const archived = closed(digests);
      for (const id of ids) if (before.has(id) && archived.get(id) === before.get(id)) found++;
    }
    const left = (await store.read.runs("default", { workflow: "past", limit: 10 })).length;
    if (left > 0) say(`${left} or more runs are still in the store`);
    return before.size - found - left;
  } finally {
    await store.close();
  }
}
