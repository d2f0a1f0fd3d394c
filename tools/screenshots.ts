// Takes a picture of each screen, light and dark, into docs/images: of the built page, over a store with a made-up history.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openStore } from "../src/host/open-store.ts";
import { serve } from "../src/host/serve.ts";
import { openBrowser } from "../test/browser/chromium.ts";
import { PastClock } from "../test/browser/past.ts";
import { Scene, sceneRunner } from "../test/browser/scene.ts";
import { buildIfStale } from "./dashboard.ts";

const folder = join(fileURLToPath(new URL("..", import.meta.url)), "docs", "images");
const most = 150_000;

const screens: readonly (readonly [name: string, path: string, deed?: string])[] = [
  ["overview", "/"],
  ["runs", "/runs"],
  ["run", "/runs/treasury-2026-11-14"],
  ["run-in-doubt", "/runs/payout-77"],
  ["journal", "/runs/treasury-2026-11-14?tab=journal"],
  ["doubt", "/doubt"],
  ["gates", "/gates"],
  ["leases", "/leases"],
  ["effects", "/effects"],
  ["obligations", "/obligations"],
  ["timers", "/timers"],
  ["values", "/values"],
  ["health", "/health"],
  ["audit", "/audit"],
  ["fork", "/runs/treasury-2026-11-14", "Fork"],
];

process.env.TAPE_REPLICA_ID = "server-1";
await buildIfStale((line) => console.log(line));
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const clock = new PastClock(80 * 60_000);
const store = await openStore("memory:", { clock });
await new Scene(store, clock).make({ odd: false });
const serving = await serve({ store, port: 0, clock, runner: sceneRunner, version: "0.1.0" });
const browser = await openBrowser();
try {
  for (const colorScheme of ["light", "dark"] as const) {
    const view = { colorScheme, viewport: { width: 1180, height: 760 } };
    const page = await browser.newPage({ ...view, timezoneId: "UTC", reducedMotion: "reduce" });
    for (const [name, path, deed] of screens) await shoot(page, `${name}-${colorScheme}.png`, path, deed);
    await page.setViewportSize({ width: 390, height: 800 });
    await shoot(page, `phone-${colorScheme}.png`, "/runs/treasury-2026-11-14");
    await page.close();
  }
} finally {
  await browser.close();
  await serving.stop(1_000);
  await store.close();
}

async function shoot(
  page: Awaited<ReturnType<Awaited<ReturnType<typeof openBrowser>>["newPage"]>>,
  file: string,
  path: string,
  deed?: string,
): Promise<void> {
  await page.goto(`${serving.url}${path}`);
  await page.locator("main h1").waitFor();
  await page.locator(".loading").first().waitFor({ state: "hidden" });
  if (deed !== undefined) {
    await page.getByRole("button", { name: deed }).click();
    await page.getByLabel("Go on from").selectOption("2");
    await page.locator("dialog fieldset").waitFor();
  }
  await page.waitForTimeout(250); // what follows from the first answers is drawn
  const bytes = (await page.screenshot({ path: join(folder, file) })).length;
  console.log(`${file} ${Math.round(bytes / 1_000)} kB${bytes > most ? ", too large" : ""}`);
}
