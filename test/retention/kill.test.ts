import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { fill } from "../../bench/growth-fill.ts";
import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { fileArchive } from "../../src/retention/file-archive.ts";
import { archivedRun } from "../../src/retention/read.ts";
import { ManualClock } from "../../testkit/clock.ts";

const program = new URL("../../bench/endless/prune-process.ts", import.meta.url).pathname;

/** Runs a retention process; with `after`, kills it that long after it has reported its first file. */
async function retain(url: string, folder: string, after?: number): Promise<void> {
  const child = spawn(process.execPath, [program, url, folder], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const _line of createInterface({ input: child.stdout })) {
    if (after !== undefined) systemClock.after(after, () => child.kill("SIGKILL"));
  }
}

it("a retention process that is killed loses no run", { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "tape-retention-"));
  try {
    const url = `sqlite:${join(folder, "tape.db")}`;
    const archived = join(folder, "archive");
    const runs = 2_000;
    await fill(url, runs);
    const db = new DatabaseSync(join(folder, "tape.db"));
    db.exec("update runs set ended_at = ended_at - 60000"); // a run that ended just now is not dated yet
    db.close();
    for (const after of [0, 15]) await retain(url, archived, after);
    await retain(url, archived);
    const store = await openStore(url);
    const archive = fileArchive(archived, { clock: new ManualClock(), random: systemRandom });
    expect(await store.read.runs("default")).toEqual([]);
    let found = 0;
    let sample: { readonly id: string; readonly archive: string } | undefined;
    for (let above = ""; ; above = sample!.id) {
      const page = await store.read.archived("default", { above });
      if (page.length === 0) break;
      found += page.length;
      sample = page.at(-1);
      const lines = await Array.fromAsync(archivedRun(archive, sample!.archive, sample!.id));
      expect(lines.map(({ type, kind }) => kind ?? type)).toEqual(["run", "run.created", "step.done", "run.ended"]);
    }
    expect(found).toBe(runs + 1);
    await store.close();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
