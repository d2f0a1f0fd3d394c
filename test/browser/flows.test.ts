import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { openBrowser } from "./chromium.ts";
import { describeDoubts } from "./doubts.ts";
import { describeLarge } from "./large.ts";
import { describeLive } from "./live.ts";
import { describeProcesses } from "./processes.ts";
import { bound, done, markup } from "./scene.ts";
import { buildPage, openPage, openStage, type Stage, settled, soon, type Watched } from "./stage.ts";

/** One server, one page: each flow has runs of its own, and judges by the store what a click has done. */
let browser: Browser;
let stage: Stage;
let watched: Watched;
let page: Page;
beforeAll(async () => {
  buildPage();
  browser = await openBrowser();
  stage = await openStage({});
  watched = await openPage(browser, stage.serving);
  page = watched.page;
});
afterEach(() => expect(watched.wrong).toEqual([]));
afterAll(async () => {
  await watched?.close();
  await stage?.close();
  await browser?.close();
});

const give = async (reason: string, label: string): Promise<void> => {
  const dialog = page.locator("dialog[open]").last();
  await dialog.getByLabel("Why").fill(reason);
  await dialog.getByRole("button", { name: label, exact: true }).click();
};

it("runs: filters are in the address, the search finds a run, the keyboard goes through the rows", async () => {
  await page.goto("/");
  await settled(page);
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await page.getByLabel("Status").selectOption("FAILED");
  await soon(() => page.url()).toContain("status=FAILED");
  await page.getByRole("link", { name: "report-9" }).waitFor();
  expect(await page.locator("tbody tr").count()).toBe(1);
  await page.goto("/runs?label=customer:acme");
  await page.getByRole("link", { name: "payout-77" }).waitFor();
  expect(await page.locator("tbody tr").count()).toBe(1);
  await page.goto("/runs?workflow=sync");
  await page.getByRole("link", { name: "sync-012" }).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await soon(() => page.url()).toMatch(/runs\/sync-011$/);
  await page.keyboard.press("/");
  await page.keyboard.type("bank.wire:inv-payout-77");
  await page.keyboard.press("Enter");
  await soon(() => page.url()).toMatch(/runs\/payout-77$/);
  await page.getByRole("heading", { name: "payout-77", level: 1 }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("nobody");
  await page.keyboard.press("Enter");
  await page.getByText("There is no run nobody").waitFor();
});

it("runs: by time, by doubt and by the beginning of the id, all of it in the address", async () => {
  const rows = () => page.locator("tbody a").allTextContents();
  const all = await stage.store.read.runs("default", { limit: 200 });
  await page.goto("/runs");
  await page.getByLabel("has doubt").check();
  await soon(() => page.url()).toContain("doubt=true");
  await soon(rows).toEqual(["payout-80", "payout-77"]);
  const took = all.find(({ id }) => id === "treasury-2026-11-14")!.createdAt;
  const [from, until] = [took, took + 9 * 60_000].map((at) => Math.floor(at / 60_000) * 60_000);
  const local = (at: number): string =>
    new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  await page.getByLabel("has doubt").uncheck();
  await page.getByLabel("Started").selectOption("between…");
  await page.getByLabel("From").fill(local(from!));
  await page.getByLabel("Until").fill(local(until!));
  await soon(() => page.url()).toContain(`until=${encodeURIComponent(local(until!))}`);
  const within = all.filter(({ createdAt }) => createdAt >= from! && createdAt < until!).map(({ id }) => id);
  expect(within.length).toBeGreaterThan(1);
  expect(within.length).toBeLessThan(all.length);
  await soon(async () => (await rows()).toSorted()).toEqual(within.toSorted());
  await page.reload();
  await soon(async () => (await rows()).toSorted()).toEqual(within.toSorted());
  await page.keyboard.press("/");
  await page.keyboard.type("sync-01");
  await page.keyboard.press("Enter");
  await soon(() => page.url()).toMatch(/runs\?prefix=sync-01$/);
  await soon(rows).toEqual(["sync-010", "sync-011", "sync-012"]);
  await page.keyboard.press("/");
  await page.keyboard.type("refund-");
  await page.keyboard.press("Enter");
  await soon(() => page.url()).toMatch(/runs\/refund-12$/);
});

it("overview: what it says is what the store holds", async () => {
  await page.goto("/");
  const chart = page.getByRole("img", { name: /^Runs in 2 min: / });
  await chart.waitFor();
  const now = await stage.store.read.now();
  const since = (Math.floor(now / 120_000) - 29) * 120_000;
  const all = await stage.store.read.runs("default", { limit: 200 });
  const started = all.filter(({ createdAt }) => createdAt >= since).length;
  const failed = all.filter(({ status, endedAt }) => status === "FAILED" && endedAt! >= since).length;
  expect(await chart.getAttribute("aria-label")).toMatch(
    new RegExp(`1 h ${started} started, \\d+ ended well, ${failed} failed`),
  );
  await page.getByRole("img", { name: /^How late the reactors are: now .*recovery/ }).waitFor();
  const spend = page.getByRole("region", { name: "Spend against budgets" });
  await spend.getByText("usd: 31.1 spent, of 75 in 3 runs").waitFor();
  await page.getByRole("region", { name: "Store and leases" }).getByText("1 without progress").waitFor();
  const needs = page.getByRole("region", { name: "Needs a person" }).locator("a .mono");
  const named = ["payout-77", "payout-80", "refund-12", "treasury-2026-11-15", `odd ${markup}`];
  await soon(async () => (await needs.allTextContents()).toSorted()).toEqual(named.toSorted());
  await spend.getByRole("link").click();
  await page.locator("tr.loud", { hasText: "import-31" }).getByText("94 %").waitFor();
  expect(await page.locator("tr.loud").count()).toBe(1);
});

it("overview: a quota is shown once most of it is used", async () => {
  const { intake, read } = stage.store;
  const act = { by: "ada", reason: "a drill" };
  const { used } = await intake.setQuota("default", { schedules: 1, runs: 1_000 }, act);
  await page.goto("/");
  const quotas = page.getByRole("region", { name: "Quotas" });
  await quotas.getByText(`${used.schedules} of 1 schedules · what comes next is refused`).waitFor();
  expect(await quotas.getByText("runs").count()).toBe(0);
  await intake.setQuota("default", { schedules: null, runs: null }, act);
  expect((await read.quota("default")).limits.runs).toBe(null);
});

it("run: one stripe for each term, the takeover marked, each record within reach", async () => {
  await page.goto("/runs/treasury-2026-11-14");
  const terms = await stage.store.read.terms("default", { run: "treasury-2026-11-14" });
  await soon(() => page.locator(".stripe").count()).toBe(terms.length);
  expect(terms.map(({ end }) => end)).toEqual(["expired", "released", "released"]);
  expect(await page.locator(".stripe.torn").getAttribute("aria-label")).toBe(
    "Token 1, worker-a, first owner, ended: expired",
  );
  expect(await page.locator(".stripe.taken").getAttribute("aria-label")).toContain(
    "the time of the owner before ran out",
  );
  await soon(() => page.locator("button.time-name").allInnerTexts()).toEqual([
    ...["run created\ntreasury", "decision\nplan", "gate\ncfo\nreceived"],
    ...["effect\nbank.wire", "step\nbook", "run ended\ncompleted"],
  ]);
  // What worker-b was given from the journal in each of its two terms; the wire was in doubt, and was not.
  const hatched = (name: string) => page.locator(".time-row", { hasText: name }).locator(".replayed").count();
  expect(await Promise.all(["plan", "cfo", "bank.wire", "book"].map(hatched))).toEqual([2, 2, 0, 0]);
  await page.getByRole("button", { name: "decision plan" }).click();
  const decided = page.locator("dialog[open]");
  await decided.getByText("worker-b at token 2, worker-b at token 4").waitFor();
  const asked = decided.getByRole("region", { name: "What the model was asked" });
  expect(await asked.locator("pre").textContent()).toContain('"task": "plan the sweep"');
  await decided.getByRole("region", { name: "What the model answered" }).getByText('"why"').waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".stripe.taken").click();
  await page.getByText("worker-b/1").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "effect bank.wire" }).click();
  const drawer = page.locator("dialog[open]");
  await drawer.getByText("records as they are").click();
  await drawer.getByText("effect.observed").waitFor();
  expect(await drawer.locator("pre").allTextContents()).toContainEqual(expect.stringContaining('"sweep-2026-11-14"'));
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Leases", exact: true }).last().click();
  await page.getByRole("cell", { name: "expired" }).waitFor();
  await page.getByRole("link", { name: "Input and result" }).click();
  await page.getByText('"r-118"').waitFor();
  await page.getByText("usd: 0 spent").waitFor();
});

it("text that looks like markup stays text, on every screen that shows it", async () => {
  const odd = `/runs/${encodeURIComponent(`odd ${markup}`)}`;
  for (const path of ["/", "/runs", "/gates", "/values", odd, `${odd}?tab=journal`, `${odd}?tab=leases`]) {
    await page.goto(path);
    await settled(page);
    await page.getByText("<img src=x").first().waitFor();
    expect(await page.locator("main img, main script").count(), path).toBe(0);
    expect(await page.title(), path).toBe("Tape");
  }
});

describeDoubts(() => ({ page, stage, give }));

it("gates: an approval carries what it binds", async () => {
  const run = "treasury-2026-11-15";
  await page.goto("/gates");
  const card = page.getByRole("article", { name: `Gate cfo of ${run}` });
  await card.getByRole("button", { name: "Approve" }).click();
  await give("within the limit", "Approve");
  await page.locator("dialog").waitFor({ state: "detached" });
  const notes = await stage.store.read.journal("default", { run }, { inbox: true });
  expect(notes.map(({ kind, data }) => ({ kind, data }))).toEqual([
    {
      kind: "signal.sent",
      data: expect.objectContaining({
        name: "cfo",
        value: { approved: true, note: "within the limit" },
        binds: bound,
      }),
    },
  ]);
});

it("gates: a card that has gone stale is refused, and says so", async () => {
  const run = `odd ${markup}`;
  await page.goto("/gates");
  await page
    .getByRole("article", { name: /^Gate <img/ })
    .getByRole("button", { name: "Reject" })
    .click();
  // The page hears of nothing any more: it goes on showing the card while the gate's time runs out.
  await page.route("**/v1/gates?open=true*", () => {});
  const term = await stage.scene.acquire({ run }, "worker-a", "free", { reason: "wake" });
  await stage.scene.write(
    term,
    done("gate.resolved", { pos: 1, to: "TIMED_OUT" }),
    done("term.ended", { end: "released", taken: 0 }),
  );
  await give("no", "Reject");
  await page.getByText("This gate is no longer open").waitFor();
  expect(await stage.store.read.journal("default", { run }, { inbox: true })).toEqual([]);
  await page.unroute("**/v1/gates?open=true*");
});

it("leases: who stalls stands out; a takeover fences the owner in the person's name", async () => {
  await page.goto("/leases");
  await page.locator("tr.loud", { hasText: "nightly-report" }).waitFor();
  expect(await page.locator("tr.loud").count()).toBe(1);
  const before = await stage.store.read.lease("default", { name: "sweeper" });
  await page.getByRole("button", { name: "sweeper", exact: true }).click();
  await page.getByRole("button", { name: "Take over" }).click();
  await give("it hangs", "Take over");
  await soon(async () => (await stage.store.read.lease("default", { name: "sweeper" }))?.state).toBe("FREE");
  const after = await stage.store.read.lease("default", { name: "sweeper" });
  expect(after!.token).toBeGreaterThan(before!.token);
  const terms = await stage.store.read.terms("default", { name: "sweeper" });
  expect(terms).toMatchObject([
    { begunBy: "start", end: "manual" },
    { begunBy: "manual", why: "it hangs" },
  ]);
  await page.goto("/leases");
  await page.getByLabel("also free ones").check();
  await page.getByRole("button", { name: "old-sweeper" }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await give("needed again", "Resume");
  await soon(async () => (await stage.store.read.lease("default", { name: "old-sweeper" }))?.paused).toBe(false);
});

it("takeover of a run: from its page and from its lease; the owner is fenced at once, and the ledger says by whom", async () => {
  const run = "import-31";
  const owner = await stage.store.read.lease("default", { run });
  expect(owner).toMatchObject({ state: "HELD", label: "worker-b" });
  await page.goto(`/runs/${run}`);
  await page.getByRole("button", { name: "Take over" }).click();
  await page.getByText("worker-b is fenced at once").waitFor();
  await give("its machine hangs", "Take over");
  await page.locator("dialog").waitFor({ state: "detached" });
  expect(await stage.store.read.terms("default", { run })).toMatchObject([
    { label: "worker-b", end: "manual" },
    { begunBy: "manual", why: "its machine hangs", end: "manual" },
  ]);
  await page.locator(".stripe.taken").waitFor();
  expect(await page.getByRole("button", { name: "Take over" }).count()).toBe(0);
  await stage.scene.acquire({ run }, "worker-c", "free", { ttlMs: 3_600_000 });
  await page.goto("/leases");
  await page.getByRole("button", { name: run }).click();
  await page.getByRole("button", { name: "Take over" }).click();
  await give("wrong machine", "Take over");
  await soon(async () => (await stage.store.read.lease("default", { run }))?.state).toBe("FREE");
  const terms = await stage.store.read.terms("default", { run });
  expect(terms.slice(2)).toMatchObject([{ label: "worker-c", end: "manual" }, { why: "wrong machine" }]);
  const audit = await stage.store.read.audit("default");
  expect(audit.filter(({ subject }) => subject === run)).toMatchObject([
    { action: "lease.takeover", reason: "wrong machine", who: expect.any(String) },
    { action: "lease.takeover", reason: "its machine hangs", who: expect.any(String) },
  ]);
});

it("runs: a bulk cancel says how many before it does it to those, and to no other", async () => {
  await page.goto("/runs?workflow=treasury");
  await page.getByRole("button", { name: "Cancel these" }).click();
  await page.getByText("1 would be asked to stop").waitFor();
  await give("the month is closed", "Cancel 1 run");
  await page.locator("dialog").waitFor({ state: "detached" });
  const asked = async (run: string) =>
    (await stage.store.read.journal("default", { run }, { inbox: true })).filter(
      ({ kind }) => kind === "cancel.requested",
    );
  expect(await asked("treasury-2026-11-15")).toMatchObject([
    { kind: "cancel.requested", data: { reason: "the month is closed" } },
  ]);
  expect(await asked("import-31")).toEqual([]);
});

it("fork: an act that would happen twice must be ticked; then there is the new run", async () => {
  await page.goto("/runs/treasury-2026-11-14");
  await page.getByRole("button", { name: "Fork" }).click();
  await page.getByLabel("Go on from").selectOption("2");
  const doIt = page.locator("dialog").getByRole("button", { name: "Fork", exact: true });
  await page.getByRole("group", { name: "Has already happened in the world" }).waitFor();
  await page.getByLabel("Why").fill("the books were wrong");
  expect(await doIt.isDisabled()).toBe(true);
  await page.getByRole("checkbox", { name: /bank\.wire/ }).check();
  expect(await doIt.isEnabled()).toBe(true);
  await doIt.click();
  await soon(() => page.url()).toMatch(/runs\/[0-9a-f-]{36}$/);
  const id = page.url().split("/").at(-1)!;
  const [created, acted] = await stage.store.read.journal("default", { run: id });
  expect(created).toMatchObject({
    kind: "run.created",
    data: { forkedFrom: "treasury-2026-11-14", fork: { pos: 2 } },
  });
  expect(acted).toMatchObject({ kind: "operator.action", data: { action: "fork", reason: "the books were wrong" } });
});

describeLarge(() => browser);
describeLive(() => browser);
describeProcesses(() => browser);
