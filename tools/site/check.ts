import { existsSync } from "node:fs";
import { join } from "node:path";
import { violations } from "../../test/browser/axe.ts";
import { openBrowser } from "../../test/browser/chromium.ts";
import { builtPages, deadLinks } from "./built-links.ts";
import { serveFiles } from "./serve-files.ts";
import { docsPages } from "./stage.ts";

/** Pages that a browser opens, light and dark, wide and narrow: each kind of page once. */
const opened = [
  ...["index", "quickstart", "concepts", "api/index", "api/workflows", "api/effects", "operating", "reliability"],
  ...["benchmarks", "seeds", "dashboard", "errors", "project/architecture"],
];
const widths = { desktop: { width: 1_280, height: 900 }, phone: { width: 390, height: 844 } };

/** A word, and a page that a search for it must find. */
const searches = [
  ["fencing token", "leases"],
  ["EffectOptions", "api/effects"],
  ["kill -9", "quickstart"],
] as const;

/** A busy machine loads the index slowly. */
const searchMs = 60_000;

/** Checks a built site: links, anchors, every page of docs, search, and axe's rules for WCAG 2.2 A and AA. */
export async function checkSite(folder: string): Promise<{ passed: number; failed: number }> {
  const total = { passed: 0, failed: 0 };
  const report = (name: string, problems: readonly string[]): void => {
    if (problems.length === 0) total.passed++;
    else total.failed++;
    console.log(`${problems.length === 0 ? "ok" : "FAILED"} ${name}`);
    for (const problem of problems.slice(0, 30)) console.log(`   ${problem}`);
  };
  const missing = docsPages().filter((page) => !existsSync(join(folder, `${page}.html`)));
  report(`every page of docs is on the site (${docsPages().length})`, missing);
  const { checked, dead } = deadLinks(folder);
  report(`${checked} links of ${builtPages(folder).length} pages lead somewhere`, [...new Set(dead)]);

  const server = await serveFiles(folder);
  const browser = await openBrowser();
  try {
    for (const colorScheme of ["light", "dark"] as const) {
      for (const [width, viewport] of Object.entries(widths)) {
        const context = await browser.newContext({ colorScheme, viewport, reducedMotion: "reduce" });
        const page = await context.newPage();
        page.setDefaultTimeout(searchMs);
        const errors: string[] = [];
        page.on("pageerror", (error) => errors.push(String(error)));
        for (const name of opened) {
          await page.goto(`${server.url}/${name}.html`, { waitUntil: "networkidle" });
          const found = await violations(page);
          const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
          const wide = Number(overflow) > 0 ? [`the page is ${overflow} px wider than the window`] : [];
          report(`${name}, ${colorScheme}, ${width}: axe finds nothing, and it fits`, [...found, ...wide, ...errors]);
        }
        await context.close();
      }
    }
    const page = await browser.newPage();
    page.setDefaultTimeout(searchMs);
    for (const [words, place] of searches) {
      await page.goto(`${server.url}/index.html`, { waitUntil: "networkidle" });
      await page.keyboard.press("Control+k");
      await page.locator("#localsearch-input").fill(words);
      const link = page.locator(`#localsearch-list a.result[href*="/${place}.html"]`).first();
      const hit = await link.waitFor({ timeout: searchMs }).then(
        () => true,
        () => false,
      );
      report(`a search for "${words}" finds ${place}`, hit ? [] : ["it does not"]);
    }
  } finally {
    await browser.close();
    server.close();
  }
  return total;
}
