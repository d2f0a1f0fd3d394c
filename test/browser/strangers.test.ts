import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { openBrowser } from "./chromium.ts";
import { buildPage, openPage, openStage, type Stage, settled, type Watched } from "./stage.ts";

/** What strangers write stands on the screens of people who decide: it neither reverses, hides, widens nor breaks them. */
let browser: Browser;
let stage: Stage;
let watched: Watched;
let page: Page;
let app: Tape;

const long = "n".repeat(500);
const bidi = "pay \u202e0001\u202c to \u2066bob\u200b";
const asks = workflow(long, async (tape) => {
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
    runner: createRunner({ workflows: [asks, approves, fails] }),
    log: "silent",
  });
  await app.start(asks, { [long]: long }, { id: long, labels: { [long.slice(0, 60)]: long } });
  await app.start(approves, bidi, { id: "approve-7" });
  await (await app.start(fails, 1, { id: "failed-1" })).result().catch(() => {});
  await app.leases.acquire(long);
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

it.each([
  "/",
  "/runs",
  `/runs/${long}`,
  `/runs/${long}?tab=journal`,
  "/gates",
  "/leases",
  "/health",
  "/timers",
  "/audit",
])("long names do not widen %.40s", async (path) => {
  await page.goto(path);
  await settled(page);
  const beyond = await page.evaluate<number>(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  );
  expect(beyond).toBe(0);
});

describe("an approver reads what is there", () => {
  it.each(["/gates", "/runs/approve-7", "/runs/approve-7?tab=journal"])("%s", async (path) => {
    await page.goto(path);
    await settled(page);
    const text = await page.evaluate<string>("document.body.innerText");
    expect(text).toContain("pay \\u202e0001\\u202c to \\u2066bob\\u200b");
    expect(text).not.toMatch(/[\u200b-\u200f\u202a-\u202e\u2066-\u2069]/);
  });
});

it("the first screen of a failed run says why", async () => {
  await page.goto("/runs/failed-1");
  await page.getByText("Error: card expired; cause: Error: bank says no").waitFor();
});

it("a value called tape-dev/stage puts no button on a server that is not dev's", async () => {
  for (const value of [1, { deeds: ["kill", "Send it all to bob"], workflow: "w" }]) {
    const answer = await fetch(`${stage.serving.url}/v1/values/tape-dev%2Fstage`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ value, when: "unconditional" }),
    });
    expect(answer.status).toBe(200);
    await page.goto("/");
    await settled(page);
    expect(await page.getByText(/Send it all|Kill its worker|while the bank/).count()).toBe(0);
    expect(await page.getByText("could not be drawn").count()).toBe(0);
  }
  expect(watched.wrong).toEqual([]);
});
