import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { describeAttention } from "./attention.ts";
import { describeBuilds } from "./builds.ts";
import { openBrowser } from "./chromium.ts";
import { describeConversation } from "./conversation.ts";
import { describeFirstVisit } from "./first-visit.ts";
import { describeLarge } from "./large.ts";
import { describeLive } from "./live.ts";
import { describeProcesses } from "./processes.ts";
import { describeQueues } from "./queues.ts";
import { bound, done, markup } from "./scene.ts";
import { describeSinks } from "./sinks.ts";
import { buildPage, openPage, openStage, type Stage, settled, soon, type WatchedPage } from "./stage.ts";

/** One server, one page. Each flow uses runs of its own, and checks in the store what a click did. */
let browser: Browser;
let stage: Stage;
let watched: WatchedPage;
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

/** Enters the reason and presses the submit button of the open dialog. */
const submit = async (reason: string, label: string): Promise<void> => {
  const dialog = page.locator("dialog[open]").last();
  await dialog.getByLabel("Reason").fill(reason);
  await dialog.getByRole("button", { name: label, exact: true }).click();
};

it("runs: keeps filters in the address, finds a run, steps through rows by keyboard", async () => {
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
  await page.keyboard.type("missing");
  await page.keyboard.press("Enter");
  await page.getByText("Run missing not found").waitFor();
});

it("runs: filters by time, in doubt and id prefix, and keeps them in the address", async () => {
  const rows = () => page.locator("tbody a[data-row]").allTextContents();
  const all = await stage.store.read.runs("default", { limit: 200 });
  await page.goto("/runs");
  await page.getByLabel("in doubt only").check();
  await soon(() => page.url()).toContain("inDoubt=true");
  await soon(rows).toEqual(["payout-80", "payout-77"]);
  const startedAt = all.find(({ id }) => id === "treasury-2026-11-14")!.createdAt;
  const [from, until] = [startedAt, startedAt + 9 * 60_000].map((at) => Math.floor(at / 60_000) * 60_000);
  const local = (at: number): string =>
    new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  await page.getByLabel("in doubt only").uncheck();
  await page.getByLabel("Started").selectOption("custom range…");
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

it("overview: shows what the store holds", async () => {
  await page.goto("/");
  const chart = page.getByRole("img", { name: /^Runs per 2 min: / });
  await chart.waitFor();
  const now = await stage.store.read.now();
  const since = (Math.floor(now / 120_000) - 29) * 120_000;
  const all = await stage.store.read.runs("default", { limit: 200 });
  const started = all.filter(({ createdAt }) => createdAt >= since).length;
  const failed = all.filter(({ status, endedAt }) => status === "FAILED" && endedAt! >= since).length;
  expect(await chart.getAttribute("aria-label")).toMatch(
    new RegExp(`last 1 h: ${started} started, \\d+ ended without failure, ${failed} failed`),
  );
  await page.getByRole("img", { name: /^Reactor lag: now .*recovery/ }).waitFor();
  const spend = page.getByRole("region", { name: "Budget usage" });
  await spend.getByText("usd: 31.1 of 75 spent (3 runs)").waitFor();
  await page.getByRole("region", { name: "Store and leases" }).getByText("1 without progress").waitFor();
  const attention = page.getByRole("region", { name: "Needs attention" }).locator("a .mono");
  const expected = [
    "payout-77",
    "payout-80",
    "refund-12",
    "sink billing",
    "sink crm",
    "treasury-2026-11-15",
    `odd ${markup}`,
  ];
  await soon(async () => (await attention.allTextContents()).toSorted()).toEqual(expected.toSorted());
  await spend.getByRole("link").click();
  await page.locator("tr.highlighted", { hasText: "import-31" }).getByText("94 %").waitFor();
  expect(await page.locator("tr.highlighted").count()).toBe(1);
});

it("overview: shows a quota when most of it is used", async () => {
  const { intake, read } = stage.store;
  const audit = { by: "ada", reason: "a drill" };
  const { used } = await intake.setQuota("default", { schedules: 1, runs: 1_000 }, audit);
  await page.goto("/");
  const quotas = page.getByRole("region", { name: "Quotas" });
  await quotas.getByText(`${used.schedules} of 1 schedules · limit reached, new ones are rejected`).waitFor();
  expect(await quotas.getByText("runs").count()).toBe(0);
  await intake.setQuota("default", { schedules: null, runs: null }, audit);
  expect((await read.quota("default")).limits.runs).toBe(null);
});

it("run: shows a stripe per term, marks the takeover, opens every record", async () => {
  await page.goto("/runs/treasury-2026-11-14");
  const terms = await stage.store.read.terms("default", { run: "treasury-2026-11-14" });
  await soon(() => page.locator(".stripe").count()).toBe(terms.length);
  expect(terms.map(({ endReason }) => endReason)).toEqual(["expired", "released", "released"]);
  expect(await page.locator(".stripe.torn").getAttribute("aria-label")).toBe(
    "Token 1, worker-a, first owner, ended: expired",
  );
  expect(await page.locator(".stripe.taken").getAttribute("aria-label")).toContain("previous owner's lease expired");
  await soon(() => page.locator("button.time-name").allInnerTexts()).toEqual([
    ...["run created\ntreasury", "decision\nplan", "gate\ncfo\nreceived"],
    ...["effect\nbank.wire", "step\nbook", "run ended\ncompleted"],
  ]);
  // worker-b replayed these in each of its two terms; not the wire, which was in doubt until it was observed.
  const hatched = (name: string) => page.locator(".time-row", { hasText: name }).locator(".replayed").count();
  expect(await Promise.all(["plan", "cfo", "bank.wire", "book"].map(hatched))).toEqual([2, 2, 0, 0]);
  await page.getByRole("button", { name: "decision plan" }).click();
  const decision = page.locator("dialog[open]");
  await decision.getByText("worker-b (token 2), worker-b (token 4)").waitFor();
  const request = decision.getByRole("region", { name: "Model request" });
  expect(await request.locator("pre").textContent()).toContain('"task": "plan the sweep"');
  await decision.getByRole("region", { name: "Model response" }).getByText('"why"').waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".stripe.taken").click();
  await page.getByText("worker-b/1").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "effect bank.wire" }).click();
  const drawer = page.locator("dialog[open]");
  await drawer.getByText("raw records").click();
  await drawer.getByText("effect.observed").waitFor();
  expect(await drawer.locator("pre").allTextContents()).toContainEqual(expect.stringContaining('"sweep-2026-11-14"'));
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Term history" }).click();
  await page.getByRole("cell", { name: "expired", exact: true }).waitFor();
  await page.getByRole("link", { name: "Input and result" }).click();
  await page.getByText('"r-118"').waitFor();
  await page.getByText("usd: 0 of 50 spent").waitFor();
});

it("shows markup in names and values as text, on every screen", async () => {
  const odd = `/runs/${encodeURIComponent(`odd ${markup}`)}`;
  for (const path of ["/", "/runs", "/gates", "/values", odd, `${odd}?tab=journal`, `${odd}?tab=terms`]) {
    await page.goto(path);
    await settled(page);
    await page.getByText("<img src=x").first().waitFor();
    expect(await page.locator("main img, main script").count(), path).toBe(0);
    expect(await page.title(), path).toBe("Tape");
  }
});

describeAttention(() => ({ page, stage, submit }));

it("run: shows what the run has published, its requests, and a callback that no button opens", async () => {
  const { store } = stage;
  const first = { owner: "worker-a/1", label: "worker-a", reactor: "agent", ttlMs: 3_600_000, nonce: 4_242n };
  const [made] = await store.intake.createRuns("default", [{ id: "cart-7", workflow: "cart", input: 1 }], first);
  if (!made?.ok || made.term === undefined) throw new Error("the run was not created");
  await store.intake.signal("default", "cart-7", { name: "add", value: 5, key: "click-9", asks: true });
  await store.intake.signal("default", "cart-7", { name: "add", value: 7, key: "click-10", asks: true });
  await store.fenced.append(made.term.fence, {
    after: 1,
    records: [
      { kind: "state.published", data: { pos: 0, name: "total", value: { usd: 5 } } },
      { kind: "reply.sent", data: { pos: 1, note: 1, value: 5 } },
      { kind: "gate.opened", data: { pos: 2, name: "paid", callback: "json" } },
    ],
  });
  await page.goto("/runs/cart-7");
  const published = page.getByRole("article", { name: "Published values" });
  await expect.poll(() => published.textContent()).toMatch(/total.*"usd": 5/s);
  const stream = (from: number, ...texts: string[]) => ({
    streams: [{ name: "tokens", from, chunks: texts.map((value) => ({ part: 3, value })) }],
  });
  await store.fenced.appendChunks([[made.term.fence, stream(0, "to ", "be")]]);
  const tokens = page.getByRole("article", { name: "Stream tokens" });
  await expect.poll(() => tokens.textContent()).toMatch(/to be/);
  await store.fenced.appendChunks([[made.term.fence, stream(2, " or not")]]);
  await expect.poll(() => tokens.textContent()).toMatch(/to be or not/);
  const requests = page.getByRole("article", { name: "Requests" }).getByRole("listitem");
  await expect.poll(() => requests.allTextContents()).toHaveLength(2);
  expect(await requests.allTextContents()).toEqual([
    expect.stringMatching(/add click-10 asked .* waiting for a reply/),
    expect.stringMatching(/add click-9 asked .* answered/),
  ]);
  const gate = page.getByRole("article", { name: "Gate paid of cart-7" });
  expect(await gate.textContent()).toContain("only the token of this callback opens it");
  expect(await gate.getByRole("button").count()).toBe(0);
});

it("gates: sends the fingerprint that the gate is bound to with an approval", async () => {
  const run = "treasury-2026-11-15";
  await page.goto("/gates");
  const card = page.getByRole("article", { name: `Gate cfo of ${run}` });
  await card.getByRole("button", { name: "Approve" }).click();
  await submit("within the limit", "Approve");
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

it("gates: rejects a decision from a stale card", async () => {
  const run = `odd ${markup}`;
  await page.goto("/gates");
  await page
    .getByRole("article", { name: /^Gate <img/ })
    .getByRole("button", { name: "Reject" })
    .click();
  // The page gets no more updates: it still shows the card when the gate has timed out.
  await page.route("**/v1/gates?open=true*", () => {});
  const term = await stage.scene.acquire({ run }, "worker-a", "free", { reason: "wake" });
  await stage.scene.write(
    term,
    done("gate.resolved", { pos: 1, to: "TIMED_OUT" }),
    done("term.ended", { reason: "released", notesTaken: 0 }),
  );
  await submit("no", "Reject");
  await page.getByText("TAPE_GATE_STALE").waitFor();
  expect(await stage.store.read.journal("default", { run }, { inbox: true })).toEqual([]);
  await page.unroute("**/v1/gates?open=true*");
});

it("leases: highlights a stalled holder, and records who took a lease over", async () => {
  await page.goto("/leases");
  await page.locator("tr.highlighted", { hasText: "nightly-report" }).waitFor();
  const shards = page.getByRole("region", { name: "Shards" }).locator("tr.highlighted");
  await soon(() => shards.locator("td").allInnerTexts()).toEqual(["sandboxes", "3 of 4", "worker-a ×2, worker-b", "3"]);
  await page.getByText("shard 1 of 4 of sandboxes").waitFor();
  expect(await page.locator("tr.highlighted").count()).toBe(2);
  await page.getByRole("button", { name: "sink crm" }).click();
  await page.getByRole("figure", { name: "Checkpoint" }).getByText("the customer database is being moved").waitFor();
  await page.keyboard.press("Escape");
  const before = await stage.store.read.lease("default", { name: "sweeper" });
  await page.getByRole("button", { name: "sweeper", exact: true }).click();
  await page.getByRole("button", { name: "Take over" }).click();
  await submit("it hangs", "Take over");
  await soon(async () => (await stage.store.read.lease("default", { name: "sweeper" }))?.state).toBe("FREE");
  const after = await stage.store.read.lease("default", { name: "sweeper" });
  expect(after!.token).toBeGreaterThan(before!.token);
  const terms = await stage.store.read.terms("default", { name: "sweeper" });
  expect(terms).toMatchObject([
    { startReason: "start", endReason: "manual" },
    { startReason: "manual", auditReason: "it hangs" },
  ]);
  await page.goto("/leases");
  await page.getByLabel("include free leases").check();
  await page.getByRole("button", { name: "old-sweeper" }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await submit("needed again", "Resume");
  await soon(async () => (await stage.store.read.lease("default", { name: "old-sweeper" }))?.paused).toBe(false);
});

it("takes a run over from its page and its lease, and records the reason", async () => {
  const run = "import-31";
  const owner = await stage.store.read.lease("default", { run });
  expect(owner).toMatchObject({ state: "HELD", label: "worker-b" });
  await page.goto(`/runs/${run}`);
  await page.getByRole("button", { name: "Take over" }).click();
  await page.getByText("worker-b is fenced immediately").waitFor();
  await submit("its machine hangs", "Take over");
  await page.locator("dialog").waitFor({ state: "detached" });
  expect(await stage.store.read.terms("default", { run })).toMatchObject([
    { label: "worker-b", endReason: "manual" },
    { startReason: "manual", auditReason: "its machine hangs", endReason: "manual" },
  ]);
  await page.locator(".stripe.taken").waitFor();
  expect(await page.getByRole("button", { name: "Take over" }).count()).toBe(0);
  await stage.scene.acquire({ run }, "worker-c", "free", { ttlMs: 3_600_000 });
  await page.goto("/leases");
  await page.getByRole("button", { name: run }).click();
  await page.getByRole("button", { name: "Take over" }).click();
  await submit("wrong machine", "Take over");
  await soon(async () => (await stage.store.read.lease("default", { run }))?.state).toBe("FREE");
  const terms = await stage.store.read.terms("default", { run });
  expect(terms.slice(2)).toMatchObject([{ label: "worker-c", endReason: "manual" }, { auditReason: "wrong machine" }]);
  const audit = await stage.store.read.audit("default");
  expect(audit.filter(({ subject }) => subject === run)).toMatchObject([
    { action: "lease.takeover", reason: "wrong machine", by: expect.any(String) },
    { action: "lease.takeover", reason: "its machine hangs", by: expect.any(String) },
  ]);
});

it("audit: shows which actions a model took by mcp", async () => {
  const via = { name: "agent", role: "operator", channel: "mcp" } as const;
  await stage.store.intake.recordAudit("default", "run.start", { by: "agent for ada", reason: "asked to", via });
  await page.goto("/audit");
  const row = page.getByRole("row", { name: "agent for ada" });
  await row.getByText("via mcp").waitFor();
  expect(await page.getByText("via mcp").count()).toBe(1);
});

it("runs: shows how many runs a bulk cancel affects, and cancels only those", async () => {
  await page.goto("/runs?workflow=treasury");
  await page.getByRole("button", { name: "Cancel matching runs" }).click();
  await page.getByText("Requests cancellation of 1 open run.").waitFor();
  await submit("the month is closed", "Cancel 1 run");
  await page.locator("dialog").waitFor({ state: "detached" });
  const requests = async (run: string) =>
    (await stage.store.read.journal("default", { run }, { inbox: true })).filter(
      ({ kind }) => kind === "cancel.requested",
    );
  expect(await requests("treasury-2026-11-15")).toMatchObject([
    { kind: "cancel.requested", data: { reason: "the month is closed" } },
  ]);
  expect(await requests("import-31")).toEqual([]);
});

it("fork: starts the new run once an effect that would happen twice is ticked", async () => {
  await page.goto("/runs/treasury-2026-11-14");
  await page.getByRole("button", { name: "Fork" }).click();
  await page.getByLabel("Fork at").selectOption("2");
  const fork = page.locator("dialog").getByRole("button", { name: "Fork", exact: true });
  await page.getByRole("group", { name: "Already happened upstream" }).waitFor();
  await page.getByLabel("Reason").fill("the books were wrong");
  expect(await fork.isDisabled()).toBe(true);
  await page.getByRole("checkbox", { name: /bank\.wire/ }).check();
  expect(await fork.isEnabled()).toBe(true);
  await fork.click();
  await soon(() => page.url()).toMatch(/runs\/[0-9a-f-]{36}$/);
  const id = page.url().split("/").at(-1)!;
  const [created, action] = await stage.store.read.journal("default", { run: id });
  expect(created).toMatchObject({
    kind: "run.created",
    data: { forkedFrom: "treasury-2026-11-14", fork: { pos: 2 } },
  });
  expect(action).toMatchObject({ kind: "operator.action", data: { action: "fork", reason: "the books were wrong" } });
});

describeLarge(() => browser);
describeLive(() => browser);
describeProcesses(() => browser);
describeQueues(() => browser);
describeConversation(() => browser);
describeBuilds(() => browser);
describeSinks(() => browser);
describeFirstVisit(() => browser);
