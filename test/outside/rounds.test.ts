import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type CrashRounds, noteRounds, readRounds, roundsFile, roundsTable } from "../../tools/outside/rounds.ts";

const stream: CrashRounds = { framework: "ADK", agent: "stream", boundaries: 4, rounds: 8, paidOnce: 8 };
const generate: CrashRounds = { framework: "ADK", agent: "generate", boundaries: 3, rounds: 6, paidOnce: 6 };

const before = process.env[roundsFile];
afterEach(() => {
  if (before === undefined) delete process.env[roundsFile];
  else process.env[roundsFile] = before;
});

describe("the rounds of outside suites", () => {
  it("are read as the suites noted them, and are noted only where a file is named", () => {
    const folder = mkdtempSync(join(tmpdir(), "tape-rounds-"));
    const file = join(folder, "rounds");
    delete process.env[roundsFile];
    noteRounds(stream);
    expect(readRounds(file)).toEqual([]);
    process.env[roundsFile] = file;
    for (const one of [stream, generate]) noteRounds(one);
    expect(readRounds(file)).toEqual([stream, generate]);
    rmSync(folder, { recursive: true });
  });

  it("make a table with a row for each agent and the sum", () => {
    expect(roundsTable([stream, generate]).split("\n")).toEqual([
      "| framework | agent | boundaries | rounds | paid once | with a zombie |",
      "|---|---|---|---|---|---|",
      "| ADK | generate | 3 | 6 | 6 | 3 |",
      "| ADK | stream | 4 | 8 | 8 | 4 |",
      "| all |  | 7 | 14 | 14 | 7 |",
    ]);
  });
});
