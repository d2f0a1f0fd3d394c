import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { type RunningServer, type ServeOptions, serve } from "../../src/host/serve.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { PastClock } from "./past-clock.ts";
import { Scene, sceneRunner } from "./scene.ts";

export { violations } from "./axe.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Builds the page from its current sources, in a process of its own: the test runner's settings must not apply. */
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
  options: Partial<ServeOptions> & {
    readonly url?: string;
    readonly made?: boolean;
    /** Writes the history instead of the scene. */
    readonly write?: (scene: Scene, clock: PastClock, store: Store) => Promise<unknown>;
  },
): Promise<Stage> {
  const { url = "memory:", made = true, write, ...serveOptions } = options;
  const clock = new PastClock(81 * 60_000);
  const store = await openStore(url, { clock });
  const scene = new Scene(store, clock);
  if (write !== undefined) await write(scene, clock, store);
  else if (made) await scene.make({ odd: true });
  clock.arrive();
  const serving = await serve({ store, port: 0, clock, runner: sceneRunner, ...serveOptions });
  return {
    ...{ store, serving, scene },
    async close() {
      await serving.stop(1_000);
      await store.close();
    },
  };
}

/** A page that collects what must never occur: errors, and requests to another origin. */
export interface WatchedPage {
  readonly page: Page;
  readonly wrong: string[];
  close(): Promise<void>;
}

export async function openPage(browser: Browser, { url }: Pick<RunningServer, "url">): Promise<WatchedPage> {
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
    // The page shows these errors to the user: they are expected.
    if (message.type() === "error" && !/status of (401|403|404|409)/.test(message.text())) wrong.push(message.text());
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) wrong.push(`requested ${request.url()}`);
  });
  return { page, wrong, close: () => context.close() };
}

/** Goes to another screen as a click on a link does: without a reload. */
export async function follow(page: Page, path: string): Promise<void> {
  const to = JSON.stringify(path);
  await page.evaluate(`history.pushState({}, "", ${to}); dispatchEvent(new PopStateEvent("popstate"))`);
  await soon(() => page.url()).toContain(path);
  await settled(page);
}

/** Polls until the expectation holds: a busy machine needs a while. */
export const soon = <T>(read: () => T | Promise<T>) => expect.poll(read, { timeout: 15_000, interval: 50 });

/** Waits until every first response is rendered. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main :is(h1, .empty)").first().waitFor();
  await page.locator(".loading").first().waitFor({ state: "hidden" });
}

export function disposable<T extends { close(): Promise<void> }>(resource: T): T & AsyncDisposable {
  return Object.assign(resource, { [Symbol.asyncDispose]: () => resource.close() });
}
