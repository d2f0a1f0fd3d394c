import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { describe, expect, inject, it } from "vitest";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { disposable, openPage, openStage } from "./stage.ts";

/** Takes the browser that all tests share. */
export function describeLive(browser: () => Browser): void {
  describe("live updates", () => {
    it.each(["sqlite", "postgres"] as const)(
      "shows what another process writes without a reload (%s)",
      async (kind) => {
        const folder = mkdtempSync(join(tmpdir(), "tape-live-"));
        const url = kind === "sqlite" ? `sqlite:${join(folder, "tape.db")}` : await freshDatabase(inject("postgres18"));
        {
          await using stage = disposable(await openStage({ url, made: false }));
          await using watched = disposable(await openPage(browser(), stage.serving));
          const { page } = watched;
          const other = fork(new URL("./other-process.ts", import.meta.url), [url, "from-another-process"]);
          await once(other, "message");
          await page.clock.install();
          const listening = page.waitForResponse(/store\/wake-hints/);
          const pending = new Set<unknown>();
          page.on("request", (request) => pending.add(request));
          for (const end of ["requestfinished", "requestfailed"] as const) {
            page.on(end as "requestfinished", (request) => pending.delete(request));
          }
          await page.goto("/runs");
          await page.getByText("No runs yet").waitFor();
          await listening;
          // From here on at most three seconds pass on the page's own clock: a wake hint brings the run, not the
          // interval of five seconds.
          await page.clock.pauseAt((await page.evaluate("Date.now() + 1000")) as number);
          let ticks = 110;
          const seen = async (): Promise<number> => {
            // Only the stream is open, so a slow response costs no time on the page's clock.
            if (pending.size <= 1 && ticks-- > 0) await page.clock.runFor(25);
            return page.getByRole("link", { name: "from-another-process" }).count();
          };
          other.send("start");
          await once(other, "message");
          const startedAt = performance.now();
          await expect.poll(seen, { timeout: 40_000, interval: 50 }).toBe(1);
          console.log(`${kind}: shown ${Math.round(performance.now() - startedAt)} ms after another process wrote it`);
          expect(await page.locator("tbody tr").count()).toBe(1);
          expect(watched.wrong).toEqual([]);
        }
        if (kind === "postgres") await dropDatabase(url);
        rmSync(folder, { recursive: true, force: true });
      },
      60_000,
    );
  });
}
