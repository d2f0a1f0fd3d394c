import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { fileLedger } from "../../src/cli/demo/treasury/ledger.ts";
import { hashOf } from "../../src/server/credentials.ts";
import { Dev } from "../cli/dev-stage.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { openBrowser } from "./chromium.ts";
import { describeLarge } from "./large.ts";
import { bound, markup } from "./scene.ts";
import { buildPage, disposable, openPage, openStage, type Stage, settled, violations, type Watched } from "./stage.ts";

let browser: Browser;
beforeAll(async () => {
  buildPage();
  browser = await openBrowser();
});
afterAll(() => browser?.close());

const give = async (page: Page, reason: string, label: string): Promise<void> => {
  const dialog = page.locator("dialog[open]").last();
  await dialog.getByLabel("Why").fill(reason);
  await dialog.getByRole("button", { name: label, exact: true }).click();
};

describe("on a store with a history", () => {
  let stage: Stage;
  let watched: Watched;
  let page: Page;
  beforeEach(async () => {
    stage = await openStage({});
    watched = await openPage(browser, stage.serving);
    page = watched.page;
  });
  afterEach(async () => {
    await watched.close();
    await stage.close();
    expect(watched.wrong).toEqual([]);
  });

  it("runs: filters are in the address, the search finds a run, the keyboard goes through the rows", async () => {
    await page.goto("/");
    await settled(page);
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByLabel("Status").selectOption("FAILED");
    await expect.poll(() => page.url()).toContain("status=FAILED");
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
    await expect.poll(() => page.url()).toMatch(/runs\/sync-011$/);
    await page.keyboard.press("/");
    await page.keyboard.type("bank.wire:inv-payout-77");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.url()).toMatch(/runs\/payout-77$/);
    await page.getByRole("heading", { name: "payout-77", level: 1 }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("nobody");
    await page.keyboard.press("Enter");
    await page.getByText("There is no run nobody").waitFor();
  });

  it("run: one stripe for each term, the takeover marked, each record within reach", async () => {
    await page.goto("/runs/treasury-2026-11-14");
    const terms = await stage.store.read.terms("default", { run: "treasury-2026-11-14" });
    await expect.poll(() => page.locator(".stripe").count()).toBe(terms.length);
    expect(terms.map(({ end }) => end)).toEqual(["expired", "released", "released"]);
    expect(await page.locator(".stripe.torn").getAttribute("aria-label")).toBe(
      "Token 1, worker-a, first owner, ended: expired",
    );
    expect(await page.locator(".stripe.taken").getAttribute("aria-label")).toContain(
      "the time of the owner before ran out",
    );
    await expect
      .poll(() => page.locator("button.time-name").allInnerTexts())
      .toEqual([
        ...["run created\ntreasury", "decision\nplan", "gate\ncfo\nreceived"],
        ...["effect\nbank.wire", "step\nbook", "run ended\ncompleted"],
      ]);
    await page.locator(".stripe.taken").click();
    await page.getByText("worker-b/1").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "effect bank.wire" }).click();
    const drawer = page.locator("dialog[open]");
    await drawer.getByText("effect.observed").waitFor();
    expect(await drawer.locator("pre").allTextContents()).toContainEqual(expect.stringContaining('"sweep-2026-11-14"'));
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Leases", exact: true }).last().click();
    await page.getByRole("cell", { name: "expired" }).waitFor();
    await page.getByRole("link", { name: "Input and result" }).click();
    await page.getByText('"r-118"').waitFor();
    await page.getByText("usd: 0 spent").waitFor();
  });

  it("doubt: it did not happen, and that is what the store holds, with who and why", async () => {
    await page.goto("/doubt");
    const card = page.getByRole("article", { name: "bank.wire of payout-77" });
    await card.getByText("Evidence").click();
    await card.getByText("the bank is closed").waitFor();
    await card.getByRole("button", { name: "It did not" }).click();
    await give(page, "looked at the account", "It did not");
    await card.waitFor({ state: "detached" });
    const [effect] = await stage.store.read.effects("default", { run: "payout-77" });
    expect(effect).toMatchObject({ status: "FAILED", reason: "operator" });
    const [entry] = await stage.store.read.audit("default");
    expect(entry).toMatchObject({ action: "resolve", reason: "looked at the account" });
  });

  it("doubt: it happened, with what it returned; a stuck run goes on", async () => {
    await page.goto("/runs/payout-77");
    await page.getByRole("button", { name: "It happened" }).click();
    await page.getByLabel("What it returned").fill('{"receipt": "r-7"}');
    await give(page, "seen at the bank", "It happened");
    await page.locator("dialog").waitFor({ state: "detached" });
    const [effect] = await stage.store.read.effects("default", { run: "payout-77" });
    expect(effect).toMatchObject({ status: "CONFIRMED", outcome: expect.stringContaining("r-7") });
    await page.goto("/doubt");
    await page.getByRole("article", { name: "refund-12 is stuck" }).getByRole("button", { name: "Redrive" }).click();
    await give(page, "the old code is back", "Redrive");
    await expect.poll(async () => (await stage.store.read.run("default", "refund-12"))?.status).toBe("RUNNABLE");
  });

  it("gates: an approval carries what it binds; a stale card is refused", async () => {
    const run = "treasury-2026-11-15";
    await page.goto("/gates");
    const card = page.getByRole("article", { name: `Gate cfo of ${run}` });
    await card.getByRole("button", { name: "Approve" }).click();
    await give(page, "within the limit", "Approve");
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
    const odd = page.getByRole("article", { name: /^Gate <img/ });
    await odd.getByRole("button", { name: "Reject" }).click();
    await page.route("**/v1/gates?run=*", (route) => route.fulfill({ json: { gates: [] } }));
    await give(page, "no", "Reject");
    await page.getByText("This gate is no longer open").waitFor();
    expect(await stage.store.read.journal("default", { run: `odd ${markup}` }, { inbox: true })).toEqual([]);
  });

  it("leases: who stalls stands out; a takeover fences the owner in the person's name", async () => {
    await page.goto("/leases");
    await page.locator("tr.loud", { hasText: "nightly-report" }).waitFor();
    expect(await page.locator("tr.loud").count()).toBe(1);
    const before = await stage.store.read.lease("default", { name: "sweeper" });
    await page.getByRole("button", { name: "sweeper", exact: true }).click();
    await page.getByRole("button", { name: "Take over" }).click();
    await give(page, "it hangs", "Take over");
    await expect.poll(async () => (await stage.store.read.lease("default", { name: "sweeper" }))?.state).toBe("FREE");
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
    await give(page, "needed again", "Resume");
    await expect
      .poll(async () => (await stage.store.read.lease("default", { name: "old-sweeper" }))?.paused)
      .toBe(false);
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
    await expect.poll(() => page.url()).toMatch(/runs\/[0-9a-f-]{36}$/);
    const id = page.url().split("/").at(-1)!;
    const [created, acted] = await stage.store.read.journal("default", { run: id });
    expect(created).toMatchObject({
      kind: "run.created",
      data: { forkedFrom: "treasury-2026-11-14", fork: { pos: 2 } },
    });
    expect(acted).toMatchObject({ kind: "operator.acted", data: { action: "fork", reason: "the books were wrong" } });
  });

  it("runs: a bulk cancel says how many before it does it to those, and to no other", async () => {
    await page.goto("/runs?workflow=treasury");
    await page.getByRole("button", { name: "Cancel these" }).click();
    await page.getByText("1 would be asked to stop").waitFor();
    await give(page, "the month is closed", "Cancel 1 run");
    await page.locator("dialog").waitFor({ state: "detached" });
    const asked = async (run: string) =>
      (await stage.store.read.journal("default", { run }, { inbox: true })).map(({ kind, data }) => ({ kind, data }));
    expect(await asked("treasury-2026-11-15")).toMatchObject([
      { kind: "cancel.asked", data: { reason: "the month is closed" } },
    ]);
    expect(await asked("import-31")).toEqual([]);
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
});

describe("for everybody", () => {
  const run = "/runs/treasury-2026-11-14";
  const screens = [
    "/",
    "/runs",
    run,
    `${run}?tab=journal`,
    `${run}?tab=leases`,
    `${run}?tab=acts`,
    `${run}?tab=result`,
  ];
  const others = ["/runs/payout-77", "/doubt", "/gates", "/leases", "/effects", "/obligations", "/timers", "/values"];

  it("axe finds nothing on any screen, light or dark, wide or narrow", async () => {
    await using stage = disposable(await openStage({}));
    await using watched = disposable(await openPage(browser, stage.serving));
    const { page } = watched;
    const judge = async (place: string): Promise<void> => {
      expect(await violations(page), place).toEqual([]);
      await page.emulateMedia({ colorScheme: "dark" });
      expect(await violations(page, ["color-contrast"]), `${place}, dark`).toEqual([]);
      await page.emulateMedia({ colorScheme: "light" });
    };
    for (const path of [...screens, ...others, "/health", "/audit", "/nowhere"]) {
      await page.goto(path);
      await settled(page);
      await judge(path);
    }
    await page.goto(run);
    await page.getByRole("button", { name: "Fork" }).click();
    await page.getByLabel("Go on from").selectOption("2");
    await page.getByRole("group").waitFor();
    await judge("fork");
    await page.setViewportSize({ width: 390, height: 800 });
    for (const path of ["/", "/runs", run, "/leases"]) {
      await page.goto(path);
      await settled(page);
      await judge(`phone ${path}`);
      expect(await page.evaluate("document.documentElement.scrollWidth"), `phone ${path}`).toBeLessThanOrEqual(390);
    }
    expect(watched.wrong).toEqual([]);
  }, 60_000);

  it("a token is asked for; a reader sees no deed, an operator does", async () => {
    await using stage = disposable(await openStage({ credentials: "required" }));
    const secret = "x".repeat(43);
    for (const role of ["reader", "operator"]) {
      const token = { id: role, tenant: "default", name: role, role, hash: hashOf(secret) };
      await stage.store.intake.putToken(token, { by: "setup", reason: "test" });
    }
    await using watched = disposable(await openPage(browser, stage.serving));
    const { page } = watched;
    await page.goto("/doubt");
    expect(await violations(page)).toEqual([]);
    await page.getByLabel("Token").fill(`nobody.${secret}`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("knows no such token").waitFor();
    await page.getByLabel("Token").fill(`reader.${secret}`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("article", { name: "bank.wire of payout-77" }).waitFor();
    for (const path of ["/doubt", "/gates", "/leases", run, "/runs/payout-77"]) {
      await page.goto(path);
      await settled(page);
      const names = await page.locator("main button").allTextContents();
      expect(
        names.filter((name) => /happened|did not|again|Approve|Reject|Fork|Cancel|Redrive/.test(name)),
        path,
      ).toEqual([]);
    }
    expect(await page.getByRole("link", { name: "Audit" }).count()).toBe(0);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").fill(`operator.${secret}`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("link", { name: "Audit" }).waitFor();
    await page.goto("/doubt");
    await page.getByRole("button", { name: "It happened" }).waitFor();
    expect(watched.wrong).toEqual([]);
  });
});

describeLarge(() => browser);

describe("live", () => {
  it.each(["sqlite", "postgres"] as const)("what another process does appears without reload (%s)", async (kind) => {
    const folder = mkdtempSync(join(tmpdir(), "tape-live-"));
    const url = kind === "sqlite" ? `sqlite:${join(folder, "tape.db")}` : await freshDatabase(inject("postgres18"));
    {
      await using stage = disposable(await openStage({ url, made: false }));
      await using watched = disposable(await openPage(browser, stage.serving));
      const { page } = watched;
      const other = fork(new URL("./elsewhere.ts", import.meta.url), [url, "from-elsewhere"]);
      await once(other, "message");
      await page.clock.install();
      await page.goto("/runs");
      await page.getByText("No run yet").waitFor();
      // From here on at most three seconds of the page's own time pass: it hears of it, it does not come across it by
      // looking every five.
      await page.clock.pauseAt((await page.evaluate("Date.now() + 1000")) as number);
      let ticks = 40;
      const seen = async (): Promise<number> => {
        if (ticks-- > 0) await page.clock.runFor(50);
        return page.getByRole("link", { name: "from-elsewhere" }).count();
      };
      other.send("start");
      await once(other, "message");
      const began = performance.now();
      await expect.poll(seen, { timeout: 15_000, interval: 100 }).toBe(1);
      console.log(`${kind}: seen ${Math.round(performance.now() - began)} ms after another process wrote it`);
      expect(await page.locator("tbody tr").count()).toBe(1);
      expect(watched.wrong).toEqual([]);
    }
    if (kind === "postgres") await dropDatabase(url);
    rmSync(folder, { recursive: true, force: true });
  });
});

it("npm start: kill the paying process from the page, and watch the takeover", { timeout: 90_000 }, async () => {
  const dev = Dev.inTerminal(["--listen", "127.0.0.1:0"], tmpdir());
  const [, url] = await dev.says(/page +(http:\S+)/);
  const [, file] = await dev.says(/store +sqlite:(\S+)/);
  await using watched = disposable(await openPage(browser, { url: url! }));
  const { page } = watched;
  await page.goto("/");
  await page.getByRole("button", { name: "Kill its worker" }).click();
  await expect.poll(() => page.url()).toMatch(/runs\/payment-\d+$/);
  const id = page.url().split("/").at(-1)!;
  await page.locator(".stripe.torn").waitFor({ timeout: 40_000 });
  await page.locator(".stripe.taken").waitFor({ timeout: 40_000 });
  await page.locator("h1 .badge", { hasText: "completed" }).waitFor({ timeout: 40_000 });
  expect(dev.text()).toContain("killed (SIGKILL)");
  const world = fileLedger(join(dirname(file!), "world.jsonl")).entries();
  expect(world.filter(({ act, about }) => act === "wire" && about === `sweep-${id}`)).toHaveLength(1);
  expect(watched.wrong).toEqual([]);
});
