import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { openBrowser } from "./chromium.ts";
import { buildPage, openPage, openStage, type Stage, settled, type WatchedPage } from "./stage.ts";

/** Untrusted text appears on the screens of operators: it must not reverse, hide, widen or break them. */
let browser: Browser;
let stage: Stage;
let watched: WatchedPage;
let page: Page;
let app: Tape;

const long = "n".repeat(500);
const bidi = "pay \u202e0001\u202c to \u2066bob\u200b";
const longNames = workflow(long, async (tape) => {
  await tape.step(long, () => long);
  return tape.gate(gate(long), { payload: { [long]: long } });
});
const approves = workflow("approves", async (tape) => tape.gate(gate(bidi), { payload: { [bidi]: bidi } }));
const fails = workflow("fails", async () =>
  Promise.reject(new Error("card expired", { cause: new Error("bank says no") })),
);

beforeAll(async () => {
  buildPage();
  browser = await openBrowser();
  stage = await openStage({ made: false });
  app = await Tape.open({
    store: stage.store,
    runner: createRunner({ workflows: [longNames, approves, fails] }),
    log: "silent",
  });
  await app.start(longNames, { [long]: long }, { id: long, labels: { [long.slice(0, 60)]: long.slice(0, 128) } });
  await app.start(approves, bidi, { id: "approve-7" });
  await (await app.start(fails, 1, { id: "failed-1" })).result().catch(() => {});
  await app.leases.acquire(long);
  await stage.store.intake.putQueue("default", long, { counts: "running" });
  const queued = { id: `queued-${long}`.slice(0, 500), workflow: long, input: 1, queue: long, key: long.slice(0, 256) };
  await stage.store.intake.createRuns("default", [queued]);
  await vi.waitFor(async () => expect(await app.gates.list()).toHaveLength(2), { timeout: 20_000 });
  watched = await openPage(browser, stage.serving);
  page = watched.page;
}, 120_000);
afterAll(async () => {
  await watched?.close();
  await app?.close();
  await stage?.close();
  await browser?.close();
});

const paths = ["/", "/runs", `/runs/${long}`, `/runs/${long}?tab=journal`];
const otherPaths = ["/gates", "/leases", "/queues", `/queues/${long}`, "/health", "/timers", "/audit"];
it.each([...paths, ...otherPaths].map((path) => [path.replace(long, "ID"), path] as const))(
  "does not widen %s when names are long",
  async (_name, path) => {
    await page.goto(path);
    await settled(page);
    const beyond = await page.evaluate<number>(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    );
    expect(beyond).toBe(0);
  },
);

describe("invisible characters", () => {
  it.each(["/gates", "/runs/approve-7", "/runs/approve-7?tab=journal"])("appear as escapes on %s", async (path) => {
    await page.goto(path);
    await settled(page);
    const text = await page.evaluate<string>("document.body.innerText");
    expect(text).toContain("pay \\u202e0001\\u202c to \\u2066bob\\u200b");
    expect(text).not.toMatch(/[\u200b-\u200f\u202a-\u202e\u2066-\u2069]/);
  });
});

it("shows why a run failed on its first screen", async () => {
  await page.goto("/runs/failed-1");
  await page.getByText("Error: card expired; cause: Error: bank says no").waitFor();
  await page.goto("/runs?status=FAILED");
  await page.getByRole("cell", { name: "Error: card expired", exact: true }).waitFor();
});

it("finds runs by several labels, which chips add and remove, in the address", async () => {
  const labels = { "a:b": "50%, or more", stage: "paid" };
  const of = (id: string, more: Readonly<Record<string, string>>) => ({ id, workflow: "w", input: 1, labels: more });
  await stage.store.intake.createRuns("default", [
    of("labelled-1", labels),
    of("labelled-2", { ...labels, stage: "open" }),
    of("labelled-3", { stage: "paid" }),
  ]);
  const rows = () => page.locator("tbody a[data-row]").allTextContents();
  await page.goto("/runs");
  await page.getByLabel("Labels").fill("stage:paid, stage:open");
  await page.getByLabel("Labels").press("Enter");
  await vi.waitFor(async () => expect(await rows()).toEqual(["labelled-3", "labelled-2", "labelled-1"]));
  await page.getByRole("button", { name: "Remove stage:open" }).click();
  await vi.waitFor(async () => expect(await rows()).toEqual(["labelled-3", "labelled-1"]));
  await page.getByRole("link", { name: "a:b:50%, or more" }).click();
  await vi.waitFor(async () => expect(await rows()).toEqual(["labelled-1"]));
  const address = page.url();
  await page.goto("/runs/labelled-2");
  await page.getByRole("link", { name: "a:b:50%, or more" }).click();
  await vi.waitFor(async () => expect(await rows()).toEqual(["labelled-2", "labelled-1"]));
  await page.goto(address);
  await vi.waitFor(async () => expect(await rows()).toEqual(["labelled-1"]));
  await page.getByLabel("Labels").fill("no pair");
  await page.getByLabel("Labels").press("Enter");
  expect(await page.getByLabel("Labels").getAttribute("aria-invalid")).toBe("true");
  expect(page.url()).toBe(address);
});

it("shows no demo buttons for a value tape-dev/stage when dev does not serve", async () => {
  for (const value of [1, { faults: ["kill", "Send it all to bob"], workflow: "w" }]) {
    const response = await fetch(`${stage.serving.url}/v1/values/tape-dev%2Fstage`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ value, when: "unconditional" }),
    });
    expect(response.status).toBe(200);
    await page.goto("/");
    await settled(page);
    expect(await page.getByText(/Send it all|Kill the worker|Payment demo/).count()).toBe(0);
    expect(await page.getByText("failed to render").count()).toBe(0);
  }
  expect(watched.wrong).toEqual([]);
});
