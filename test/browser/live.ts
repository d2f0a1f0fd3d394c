import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { describe, expect, inject, it } from "vitest";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { disposable, openPage, openStage } from "./stage.ts";

/** With the one browser of all tests, which is there when they run. */
export function describeLive(browser: () => Browser): void {
  describe("live", () => {
    it.each(["sqlite", "postgres"] as const)(
      "what another process does appears without reload (%s)",
      async (kind) => {
        const folder = mkdtempSync(join(tmpdir(), "tape-live-"));
        const url = kind === "sqlite" ? `sqlite:${join(folder, "tape.db")}` : await freshDatabase(inject("postgres18"));
        {
          await using stage = disposable(await openStage({ url, made: false }));
          await using watched = disposable(await openPage(browser(), stage.serving));
          const { page } = watched;
          const other = fork(new URL("./elsewhere.ts", import.meta.url), [url, "from-elsewhere"]);
          await once(other, "message");
          await page.clock.install();
          const listens = page.waitForResponse(/store\/wake-hints/);
          const asked = new Set<unknown>();
          page.on("request", (request) => asked.add(request));
          for (const over of ["requestfinished", "requestfailed"] as const) {
            page.on(over as "requestfinished", (request) => asked.delete(request));
          }
          await page.goto("/runs");
          await page.getByText("No run yet").waitFor();
          await listens;
          // From here on at most three seconds of the page's own time pass: it hears of it, it does not come across it by
          // looking every five.
          await page.clock.pauseAt((await page.evaluate("Date.now() + 1000")) as number);
          let ticks = 110;
          const seen = async (): Promise<number> => {
            // The stream alone is open: a slow answer costs no time of the page's, and no rest after it.
            if (asked.size <= 1 && ticks-- > 0) await page.clock.runFor(25);
            return page.getByRole("link", { name: "from-elsewhere" }).count();
          };
          other.send("start");
          await once(other, "message");
          const began = performance.now();
          await expect.poll(seen, { timeout: 40_000, interval: 50 }).toBe(1);
          console.log(`${kind}: seen ${Math.round(performance.now() - began)} ms after another process wrote it`);
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
