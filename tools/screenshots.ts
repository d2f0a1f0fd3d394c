// Takes a screenshot of each screen of the built dashboard, light and dark, over a store with a made-up history, into
// docs/images. `npm run screenshots -- run attention` takes only those; `--into <folder>` writes to another folder.
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openStore } from "../src/host/open-store.ts";
import { serve } from "../src/host/serve.ts";
import type { Term } from "../src/model/lease.ts";
import { openBrowser } from "../test/browser/chromium.ts";
import { PastClock } from "../test/browser/past-clock.ts";
import { done, Scene, sceneRunner } from "../test/browser/scene.ts";
import { buildIfStale } from "./dashboard.ts";

type Page = Awaited<ReturnType<Awaited<ReturnType<typeof openBrowser>>["newPage"]>>;

interface Shot {
  readonly name: string;
  readonly path: string;
  readonly phone?: boolean;
  readonly height?: number;
  /** Clicks before the screenshot. */
  readonly prepare?: (page: Page) => Promise<unknown>;
}

const run = "/runs/treasury-2026-11-14";
const shots: readonly Shot[] = [
  { name: "overview", path: "/", height: 920 },
  { name: "runs", path: "/runs" },
  { name: "run", path: run },
  { name: "run-in-doubt", path: "/runs/payout-77" },
  {
    name: "drawer",
    path: run,
    prepare: (page) => page.getByRole("button", { name: "decision plan" }).click(),
  },
  { name: "conversation", path: "/runs/chat-7?tab=conversation", height: 1_180 },
  { name: "journal", path: `${run}?tab=journal` },
  { name: "tree", path: "/runs/trip-204?tab=tree" },
  { name: "attention", path: "/attention" },
  { name: "gates", path: "/gates" },
  { name: "leases", path: "/leases" },
  { name: "queues", path: "/queues" },
  { name: "queue", path: "/queues/models" },
  { name: "sinks", path: "/sinks" },
  { name: "sink", path: "/sinks/billing" },
  { name: "effects", path: "/effects" },
  { name: "obligations", path: "/obligations" },
  { name: "timers", path: "/timers" },
  { name: "values", path: "/values" },
  { name: "budgets", path: "/budgets" },
  { name: "health", path: "/health", height: 960 },
  { name: "audit", path: "/audit" },
  {
    name: "fork",
    path: run,
    async prepare(page) {
      await page.getByRole("button", { name: "Fork" }).click();
      await page.getByLabel("Fork at").selectOption("2");
      await page.locator("dialog fieldset").waitFor();
    },
  },
  { name: "phone-overview", path: "/", phone: true },
  { name: "phone", path: run, phone: true },
];

const { values, positionals } = parseArgs({ allowPositionals: true, options: { into: { type: "string" } } });
const folder = resolve(values.into ?? join(fileURLToPath(new URL("..", import.meta.url)), "docs", "images"));
const requested = shots.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
/** A page of the docs has several of them. */
const maxBytes = 150_000;

const minuteMs = 60_000;
/** After these minutes the store is quiet. */
const busyMinutes = 54;

/** Timers of a minute or more fire when `pass` lets a minute pass. */
class MinuteClock extends PastClock {
  readonly #waiting = new Set<() => void>();

  override after(ms: number, fn: () => void): () => void {
    if (ms < minuteMs) return super.after(ms, fn);
    this.#waiting.add(fn);
    return () => this.#waiting.delete(fn);
  }

  async pass(): Promise<void> {
    this.elapse(minuteMs);
    const due = [...this.#waiting];
    this.#waiting.clear();
    for (const fn of due) fn();
    await setTimeout(5);
  }
}

process.env.TAPE_REPLICA_ID = "server-1";
await buildIfStale((line) => console.log(line));
mkdirSync(folder, { recursive: true });
const clock = new MinuteClock(80 * minuteMs);
const store = await openStore("memory:", { clock });
const serving = await serve({ store, port: 0, clock, runner: sceneRunner, version: "0.1.0" });
await fetch(`${serving.url}/v1/overview/history`);
let minute = 0;
const scene = new Scene(store, clock, async (ms) => {
  for (let passed = 0; passed < ms; passed += minuteMs) await otherRuns(++minute);
});
await scene.make({ odd: false });
const browser = await openBrowser();
try {
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await browser.newPage({ colorScheme, timezoneId: "UTC", reducedMotion: "reduce" });
    for (const shot of requested) {
      await scene.report();
      await shoot(page, shot, colorScheme);
    }
    await page.close();
  }
} finally {
  await browser.close();
  await serving.stop(1_000);
  await store.close();
}

/** Other runs start and end, at a varying rate; some wait a few minutes for a worker. */
async function otherRuns(at: number): Promise<void> {
  const id = `sync-${100 + at}`;
  if (at % 16 === 3) await store.intake.createRuns("default", [{ id, workflow: "sync", input: { of: id } }]);
  if (at % 16 === 6) await finish(await scene.acquire({ run: `sync-${97 + at}` }, "worker-b", "free"));
  const runs = at < busyMinutes ? (at * 7) % 5 : Number(at % 8 === 0);
  for (let k = 1; k <= runs; k++) await finish(await scene.begin(`${id}-${k}`, "sync", "worker-a"));
  await clock.pass();
}

async function finish(term: Term): Promise<void> {
  clock.elapse(700);
  await scene.write(term, done("run.ended", { status: "COMPLETED", outcome: { written: 1 }, notesTaken: 0 }));
}

async function shoot(
  page: Page,
  { name, path, phone = false, height = 760, prepare }: Shot,
  colours: string,
): Promise<void> {
  await page.setViewportSize(phone ? { width: 390, height: 800 } : { width: 1180, height });
  await page.goto(`${serving.url}${path}`);
  await page.locator("main h1").waitFor();
  await page.locator(".loading").first().waitFor({ state: "hidden" });
  await prepare?.(page);
  await page.waitForTimeout(250); // what depends on the first responses is rendered
  const file = `${name}-${colours}.png`;
  const bytes = (await page.screenshot({ path: join(folder, file) })).length;
  console.log(`${file} ${Math.round(bytes / 1_000)} kB${bytes > maxBytes ? ", too large" : ""}`);
}
