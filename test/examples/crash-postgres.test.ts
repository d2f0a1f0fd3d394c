import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { startServer, type VirtualPostgres, virtualPostgres } from "../kit/virtual-postgres.ts";
import { isSampled, sampleDay } from "../sample.ts";
import { rounds, survives } from "./survival.ts";

/**
 * A round takes some hundred statements and four times as long as on SQLite. So only one boundary in eighty is visited, and
 * every kind of boundary at least once. The sample differs by example, mode and day. TAPE_TEST_EVERY_BOUNDARY=1 visits
 * them all.
 */
const stride = 80;
const title = `every example survives crashes on PostgreSQL (sample of ${sampleDay})`;

let server: Awaited<ReturnType<typeof startServer>>;
let postgres: VirtualPostgres;
beforeAll(async () => {
  server = await startServer();
  postgres = await virtualPostgres(server.url);
});
afterAll(async () => {
  await postgres?.close();
  await server?.stop();
});

const kindOf = (boundary: string): string => boundary.replace(/ #\d+$/, "");
const visited = new Set<string>();

describe(title, { timeout: 600_000 }, () => {
  it.each(rounds.map((round, index) => [...round, index] as const))("%s: %s", async (mode, _, case_, index) => {
    const report = await survives(case_, mode, {
      openStore: (time) => postgres.open(time as VirtualTime),
      only: (boundary, k) => {
        const first = !visited.has(`${mode} ${kindOf(boundary)}`);
        if (!first && !isSampled(k + index, stride)) return false;
        visited.add(`${mode} ${kindOf(boundary)}`);
        return true;
      },
    });
    expect(report.rounds).toBeGreaterThanOrEqual(Math.floor(report.boundaries.length / stride));
    expect(report.reached).toBe(report.rounds);
  });
});
