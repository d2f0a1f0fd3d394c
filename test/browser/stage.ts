import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { type RunningServer, type ServeOptions, serve } from "../../src/host/serve.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { PastClock } from "./past.ts";
import { Scene, sceneRunner } from "./scene.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The page is built from its present sources, in a process of its own: a test runner's settings are not a page's. */
export function buildPage(): void {
  execFileSync(process.execPath, [join(root, "tools/dashboard.ts"), "--if-stale"], { cwd: root, stdio: "inherit" });
}

export interface Stage {
  readonly store: Store;
  readonly serving: RunningServer;
  readonly scene: Scene;
  close(): Promise<void>;
}

export async function openStage(
  options: Partial<ServeOptions> & { readonly url?: string; readonly made?: boolean },
): Promise<Stage> {
  const { url = "memory:", made = true, ...serveOptions } = options;
  const clock = new PastClock(80 * 60_000);
  const store = await openStore(url, { clock });
  const scene = new Scene(store, clock);
  if (made) await scene.make({ odd: true });
  else clock.arrive();
  const serving = await serve({ store, port: 0, clock, runner: sceneRunner, ...serveOptions });
  return {
    ...{ store, serving, scene },
    async close() {
      await serving.stop(1_000);
      await store.close();
    },
  };
}

/** A page that keeps what it should never have: errors, and requests to anybody else. */
export interface Watched {
  readonly page: Page;
  readonly wrong: string[];
  close(): Promise<void>;
}

export async function openPage(browser: Browser, { url }: Pick<RunningServer, "url">): Promise<Watched> {
  const context = await browser.newContext({
    colorScheme: "light",
    viewport: { width: 1180, height: 760 },
    baseURL: url,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => {
    // A refusal that the page shows is no fault of the page.
    if (message.type() === "error" && !/status of (401|403|404|409)/.test(message.text())) wrong.push(message.text());
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) wrong.push(`asked ${request.url()}`);
  });
  return { page, wrong, close: () => context.close() };
}

const standards = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** What axe finds against WCAG 2.2 A and AA, as rule and place; `within` a part of the page, or all of it. */
export async function violations(page: Page, only: readonly string[] = standards, within = "html"): Promise<string[]> {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe);
  return page.evaluate(
    async ([runOnly, part]) => {
      const { axe: checker } = globalThis as unknown as {
        axe: {
          run(
            part: string,
            options: object,
          ): Promise<{ violations: { id: string; nodes: { target: unknown[]; failureSummary?: string }[] }[] }>;
        };
      };
      const found = await checker.run(part, { runOnly, resultTypes: ["violations"] });
      return found.violations.flatMap(({ id, nodes }) =>
        nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")} ${failureSummary ?? ""}`),
      );
    },
    [only, within] as const,
  );
}

/** To another screen as a click on a link would go there: without loading the page anew. */
export async function follow(page: Page, path: string): Promise<void> {
  const to = JSON.stringify(path);
  await page.evaluate(`history.pushState({}, "", ${to}); dispatchEvent(new PopStateEvent("popstate"))`);
  await soon(() => page.url()).toContain(path);
  await settled(page);
}

/** Comes true by and by: a busy machine takes its time. */
export const soon = <T>(look: () => T | Promise<T>) => expect.poll(look, { timeout: 15_000, interval: 50 });

/** All first answers are drawn. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main :is(h1, .empty)").first().waitFor();
  await page.locator(".loading").first().waitFor({ state: "hidden" });
}

export function disposable<T extends { close(): Promise<void> }>(one: T): T & AsyncDisposable {
  return Object.assign(one, { [Symbol.asyncDispose]: () => one.close() });
}
