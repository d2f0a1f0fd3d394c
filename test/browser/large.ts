import type { Browser, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { disposable, openPage, openStage } from "./stage.ts";

/** Counts the rows that responses to this call contain. */
function countRows(page: Page, path: RegExp, field: string): { rows: number; calls: number } {
  const fetched = { rows: 0, calls: 0 };
  page.on("response", async (response) => {
    if (!path.test(response.url())) return;
    const json = (await response.json().catch(() => ({}))) as Record<string, unknown[]>;
    fetched.rows += json[field]?.length ?? 0;
    fetched.calls += 1;
  });
  return fetched;
}

/** Takes the browser that all tests share. */
export function describeLarge(browser: () => Browser): void {
  describe("large stores", () => {
    it("reads a list of 100 000 runs in windows", async () => {
      await using stage = disposable(await openStage({ made: false }));
      for (let from = 0; from < 100_000; from += 10_000) {
        const ids = Array.from({ length: 10_000 }, (_none, k) => `run-${from + k}`);
        await stage.store.intake.createRuns(
          "default",
          ids.map((id) => ({ id, workflow: "bulk", input: null })),
        );
      }
      await using watched = disposable(await openPage(browser(), stage.serving));
      const { page } = watched;
      const fetched = countRows(page, /\/v1\/runs\?limit=100|\/v1\/runs\?before=/, "runs");
      await page.goto("/runs");
      await page.getByRole("link", { name: "run-99999" }).waitFor();
      const body = page.locator(".run-body");
      for (const last of ["run-99900", "run-99800", "run-99700"]) {
        // A page that arrives after the scroll moves the end of the list.
        const isShown = async (): Promise<boolean> => {
          const shown = await page.getByRole("link", { name: last }).isVisible();
          if (!shown) await body.evaluate((box) => box.scrollTo(0, box.scrollHeight));
          return shown;
        };
        await expect.poll(isShown, { timeout: 15_000 }).toBe(true);
      }
      const rendered = await page.locator("tbody tr").count();
      console.log(`100 000 runs: ${fetched.rows} rows fetched in ${fetched.calls} calls, ${rendered} rendered`);
      await expect.poll(() => fetched.rows).toBeGreaterThanOrEqual(300);
      expect(fetched.rows).toBeLessThan(2_000);
      expect(rendered).toBeLessThan(60);
      expect(watched.wrong).toEqual([]);
    }, 60_000);

    it("reads on after a page that large rows made short", async () => {
      await using stage = disposable(await openStage({ made: false }));
      const { scene, store } = stage;
      const large = "x".repeat(3 * 2 ** 20);
      for (let k = 0; k < 7; k++) {
        const term = await scene.begin(`large-${k}`, "large", "worker-a", { ttlMs: 3_600_000 });
        const ended = { status: "COMPLETED", outcome: { value: large }, notesTaken: 0 } as const;
        await store.fenced.append(term.fence, { after: 1, records: [{ kind: "run.ended", data: ended }] });
      }
      await using watched = disposable(await openPage(browser(), stage.serving));
      const { page } = watched;
      await page.goto("/runs");
      await page.getByRole("link", { name: "large-6" }).waitFor();
      await page.getByRole("link", { name: "large-0" }).waitFor();
      await page.getByText("7 runs", { exact: true }).waitFor();
      expect(await page.locator(".run-body tbody tr").count()).toBe(7);
      expect(watched.wrong).toEqual([]);
    }, 60_000);

    it("shows gates page by page, to the last one", async () => {
      await using stage = disposable(await openStage({ made: false }));
      const { scene, store } = stage;
      const term = await scene.begin("approvals", "approvals", "worker-a", { ttlMs: 3_600_000 });
      const gates = Array.from({ length: 130 }, (_none, pos) => ({
        kind: "gate.opened" as const,
        data: { pos, name: `gate-${pos}` },
      }));
      await store.fenced.append(term.fence, { after: 1, records: gates });
      await using watched = disposable(await openPage(browser(), stage.serving));
      const { page } = watched;
      await page.goto("/gates");
      await page.getByRole("button", { name: "Load more" }).click();
      await page.getByText("gate-129").first().waitFor();
      expect(await page.getByRole("button", { name: "Load more" }).count()).toBe(0);
      expect(watched.wrong).toEqual([]);
    }, 60_000);

    it("reads a run of 10 000 records in windows", async () => {
      await using stage = disposable(await openStage({ made: false }));
      const { scene, store } = stage;
      const term = await scene.begin("long", "long", "worker-a", { ttlMs: 3_600_000 });
      for (let from = 0; from < 10; from++) {
        const steps = Array.from({ length: from === 9 ? 999 : 1_000 }, (_none, k) => {
          const pos = from * 1_000 + k;
          return { kind: "step.done" as const, data: { pos, name: `step ${pos}`, value: pos } };
        });
        await store.fenced.append(term.fence, { after: 1 + from * 1_000, records: steps });
      }
      await using watched = disposable(await openPage(browser(), stage.serving));
      const { page } = watched;
      const fetched = countRows(page, /\/v1\/runs\/long\/journal/, "records");
      await page.goto("/runs/long");
      await page.getByText("records 9801 to 10000 of 10000").waitFor();
      await page.getByRole("button", { name: "step step 9998" }).waitFor();
      expect(await page.locator("[data-time-row]").count()).toBeLessThanOrEqual(200);
      await expect.poll(() => fetched.rows).toBe(200);
      await page.getByRole("button", { name: "Earlier" }).click();
      await page.getByRole("button", { name: "step step 9700" }).waitFor();
      await page.getByRole("link", { name: "Journal" }).click();
      await page.getByRole("cell", { name: "10", exact: true }).waitFor();
      await page.locator(".journal-body").evaluate((box) => box.scrollTo(0, box.scrollHeight));
      await page.getByText("name: step 9998,").waitFor();
      const rendered = await page.locator("tbody tr").count();
      console.log(`10 000 records: ${fetched.rows} fetched in ${fetched.calls} calls, ${rendered} rendered`);
      expect(fetched.rows).toBeLessThanOrEqual(1_200);
      expect(rendered).toBeLessThan(60);
      expect(watched.wrong).toEqual([]);
    });
  });
}
