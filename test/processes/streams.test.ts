import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, it, onTestFinished } from "vitest";
import { killStreams } from "../../bench/streams/kill.ts";
import { killUrl } from "../../bench/streams.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

const places = {
  async sqlite() {
    const folder = await mkdtemp(join(tmpdir(), "tape-streams-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    return `sqlite:${join(folder, "tape.db")}`;
  },
  async postgres() {
    const url = await freshDatabase(inject("postgres18"));
    onTestFinished(() => dropDatabase(url));
    return killUrl(url);
  },
};

it.each(["sqlite", "postgres"] as const)(
  "%s: readers keep each chunk once, in order, when the writer is killed in mid-stream",
  { timeout: 60_000 },
  async (place) => {
    const verdict = await killStreams({
      ...{ url: await places[place](), ttlMs: 1_000, kills: 1, bodies: 6, chunks: 20, gapMs: 10 },
      random: () => 0.4, // in the middle of a body, after a flush
    });
    expect(verdict).toMatchObject({ kills: 1, duplicates: 0, gaps: 0, disordered: 0 });
    expect(verdict.rewinds).toBeGreaterThan(0);
  },
);
