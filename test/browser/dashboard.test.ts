import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fileLedger } from "../../src/cli/demo/treasury/ledger.ts";
import { hashOf } from "../../src/server/token-auth.ts";
import { Dev } from "../cli/dev-stage.ts";
import { openBrowser } from "./chromium.ts";
import { buildPage, disposable, follow, openPage, openStage, settled, soon, violations } from "./stage.ts";

let browser: Browser;
beforeAll(async () => {
  buildPage();
  browser = await openBrowser();
});
afterAll(() => browser?.close());

describe("every user", () => {
  const run = "/runs/treasury-2026-11-14";
  const screens = [
    "/",
    "/runs",
    run,
    `${run}?tab=journal`,
    "/runs/trip-204?tab=tree",
    `${run}?tab=terms`,
    `${run}?tab=effects`,
    `${run}?tab=result`,
    "/runs/chat-7?tab=conversation",
  ];
  const dialogs = [
    [run, "Fork"],
    [run, "decision plan"],
    [run, "Token 1, worker-a, first owner, ended: expired"],
    ["/runs?workflow=treasury", "Cancel matching runs…"],
    ["/attention", "Confirm"],
    ["/attention", "Compensate"],
    ["/runs/import-31", "Take over"],
    ["/leases", "nightly-report"],
    ["/values", "rates/eur"],
    ["/queues/models", "Set limits"],
    ["/sinks/billing", "Rewind"],
    ["/sinks/billing", "Replay"],
  ] as const;
  const others = [
    "/runs/payout-77",
    "/attention",
    "/gates",
    "/leases",
    "/queues",
    "/queues/models",
    "/builds",
    "/sinks",
    "/sinks/billing",
    "/effects",
    "/obligations",
    "/timers",
    "/values",
    "/budgets",
  ];

  it("has no axe violations on any screen or dialog, light or dark, wide or narrow", async () => {
    await using stage = disposable(await openStage({}));
    await using watched = disposable(await openPage(browser, stage.serving));
    const { page } = watched;
    const judge = async (place: string, within?: string): Promise<void> => {
      expect(await violations(page, undefined, within), place).toEqual([]);
      await page.emulateMedia({ colorScheme: "dark" });
      expect(await violations(page, ["color-contrast"], within), `${place}, dark`).toEqual([]);
      await page.emulateMedia({ colorScheme: "light" });
    };
    await page.goto("/");
    await settled(page);
    for (const path of [...screens, ...others, "/health", "/audit", "/nowhere"]) {
      await follow(page, path);
      await judge(path);
    }
    for (const [path, name] of dialogs) {
      await follow(page, path);
      await page.getByRole("button", { name, exact: true }).first().click();
      await page.locator("dialog[open]").waitFor();
      if (name === "Fork") {
        await page.getByLabel("Fork at").selectOption("2");
        await page.getByRole("group").waitFor();
      }
      await judge(`${path}, ${name}`, "dialog[open]");
      await page.keyboard.press("Escape");
      await page.locator("dialog").waitFor({ state: "detached" });
    }
    await page.setViewportSize({ width: 390, height: 800 });
    for (const path of [
      "/",
      "/runs",
      run,
      "/runs/chat-7?tab=conversation",
      "/leases",
      "/queues/models",
      "/sinks",
      "/sinks/billing",
      "/attention",
    ]) {
      await follow(page, path);
      expect(await violations(page), `phone ${path}`).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth"), `phone ${path}`).toBeLessThanOrEqual(390);
    }
    expect(watched.wrong).toEqual([]);
  }, 120_000);

  it("requires a token, and offers actions to operators but not to readers", async () => {
    await using stage = disposable(await openStage({ credentials: "required" }));
    const secret = "x".repeat(43);
    for (const role of ["reader", "operator"]) {
      const token = { id: role, tenant: "default", name: role, role, hash: hashOf(secret) };
      await stage.store.intake.putToken(token, { by: "setup", reason: "test" });
    }
    await using watched = disposable(await openPage(browser, stage.serving));
    const { page } = watched;
    await page.goto("/attention");
    expect(await violations(page)).toEqual([]);
    await page.getByLabel("Token").fill(`unknown.${secret}`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This token is unknown").waitFor();
    await page.getByLabel("Token").fill(`reader.${secret}`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("article", { name: "bank.wire of payout-77" }).waitFor();
    for (const path of [
      "/attention",
      "/gates",
      "/leases",
      "/queues/models",
      "/sinks",
      "/sinks/billing",
      run,
      "/runs/payout-77",
      "/runs/import-31",
      "/runs/chat-7?tab=conversation",
    ]) {
      await page.goto(path);
      await settled(page);
      const names = await page.locator("main button").allTextContents();
      expect(
        names.filter((name) =>
          /Confirm|Mark failed|Observe|Retry|Compensate|Approve|Reject|Fork|Cancel|Redrive|Take over|Pause|Set limits|Replay|Discard|Rewind|Forget|Resume/.test(
            name,
          ),
        ),
        path,
      ).toEqual([]);
    }
    await page.goto("/runs/chat-7?tab=conversation");
    await page.getByText("The content is hidden from your role.").waitFor();
    expect(await page.getByText("Pay invoice 2026-117").count()).toBe(0);
    expect(await page.getByRole("link", { name: "Audit log" }).count()).toBe(0);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").fill(`operator.${secret}`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("link", { name: "Audit log" }).waitFor();
    await page.goto("/attention");
    await page.getByRole("button", { name: "Confirm" }).first().waitFor();
    expect(watched.wrong).toEqual([]);
  });
});

it("shows the takeover when the payment demo kills its worker", { timeout: 90_000 }, async () => {
  const dev = Dev.inTerminal(["--listen", "127.0.0.1:0"], tmpdir());
  const [, url] = await dev.says(/page +(http:\S+)/);
  const [, file] = await dev.says(/store +sqlite:(\S+)/);
  await using watched = disposable(await openPage(browser, { url: url! }));
  const { page } = watched;
  await page.goto("/");
  await page.getByRole("button", { name: "Kill the worker" }).click();
  await soon(() => page.url()).toMatch(/runs\/payment-\d+$/);
  const id = page.url().split("/").at(-1)!;
  await page.locator(".stripe.torn").waitFor({ timeout: 40_000 });
  await page.locator(".stripe.taken").waitFor({ timeout: 40_000 });
  await page.locator("h1 .badge", { hasText: "completed" }).waitFor({ timeout: 40_000 });
  expect(dev.text()).toContain("killed (SIGKILL)");
  const world = fileLedger(join(dirname(file!), "world.jsonl")).entries();
  expect(world.filter(({ kind, subject }) => kind === "wire" && subject === `sweep-${id}`)).toHaveLength(1);
  expect(watched.wrong).toEqual([]);
});
