import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { booking } from "./saga.ts";
import { done } from "./scene.ts";
import { type Stage, soon } from "./stage.ts";

interface Setup {
  readonly page: Page;
  readonly stage: Stage;
  /** Enters the reason and submits. */
  readonly submit: (reason: string, label: string) => Promise<void>;
}

/** How an operator resolves and compensates effects, on the page and store of the other flows. */
export function describeAttention(setup: () => Setup): void {
  it("attention: marks an effect failed, and records who and why", async () => {
    const { page, stage, submit } = setup();
    await page.goto("/attention");
    const card = page.getByRole("article", { name: "bank.wire of payout-77" });
    await card.getByText("1, last").waitFor();
    await card.getByText("none: an operator must resolve it").waitFor();
    await card.getByText("Records").click();
    await card.getByRole("figure", { name: "effect.observed" }).getByText("the bank is closed").waitFor();
    await card.getByRole("button", { name: "Mark failed" }).click();
    await submit("checked the account", "Mark failed");
    await card.waitFor({ state: "detached" });
    const [effect] = await stage.store.read.effects("default", { run: "payout-77" });
    expect(effect).toMatchObject({ status: "FAILED", reason: "operator" });
    const [entry] = await stage.store.read.audit("default");
    expect(entry).toMatchObject({ action: "resolve", reason: "checked the account" });
  });

  it("attention: confirms an effect with its return value, and redrives a stuck run", async () => {
    const { page, stage, submit } = setup();
    await stage.scene.inDoubt("payout-78");
    await page.goto("/runs/payout-78");
    await page.getByRole("button", { name: "Confirm" }).click();
    await page.getByLabel("Return value").fill("receipt r-7");
    await submit("seen at the bank", "Confirm");
    await page.getByText("Invalid JSON").waitFor();
    await page.getByLabel("Return value").fill('{"receipt": "r-7"}');
    await submit("seen at the bank", "Confirm");
    await page.locator("dialog").waitFor({ state: "detached" });
    const [effect] = await stage.store.read.effects("default", { run: "payout-78" });
    expect(effect).toMatchObject({ status: "CONFIRMED", outcome: expect.stringContaining("r-7") });
    await page.goto("/attention");
    await page.getByRole("article", { name: "refund-12 is stuck" }).getByRole("button", { name: "Redrive" }).click();
    await submit("the old code is back", "Redrive");
    await soon(async () => (await stage.store.read.run("default", "refund-12"))?.status).toBe("RUNNABLE");
  });

  it("attention: makes an observation due now, settles nothing, shows who requested it", async () => {
    const { page, stage, submit } = setup();
    const due = async () =>
      (await stage.store.read.agenda("default")).filter(({ reactor }) => reactor === "reconciler");
    expect((await due()).every(({ dueInMs }) => dueInMs > 0)).toBe(true);
    // On the timeline it is a point after the line "now".
    await page.goto("/runs/payout-80");
    await page.getByText("Next: effect bank.wire, next attempt by reconciler in 1 h").waitFor();
    expect(await page.locator(".point.future").count()).toBe(1);
    await page.goto("/attention");
    const card = page.getByRole("article", { name: "bank.wire of payout-80" });
    await card.getByText(/^in 1 h/).waitFor();
    await card.getByRole("button", { name: "Observe now" }).click();
    await submit("the bank has opened", "Observe now");
    await card.getByText("due now").waitFor();
    await card.getByText("the bank has opened").waitFor();
    expect((await due()).some(({ dueInMs }) => dueInMs === 0)).toBe(true);
    expect(await stage.store.read.effects("default", { run: "payout-80" })).toMatchObject([{ status: "UNKNOWN" }]);
    expect((await stage.store.read.audit("default"))[0]).toMatchObject({ reason: "the bank has opened" });
  });

  it("attention: confirms and compensates an effect; fails without compensate", async () => {
    const { page, stage, submit } = setup();
    await stage.scene.inDoubt("order-5", { name: "card.charge" });
    await page.goto("/attention");
    const wire = page.getByRole("article", { name: "bank.wire of payout-80" });
    await wire.getByRole("button", { name: "Compensate" }).click();
    await submit("paid the wrong one", "Compensate");
    await page.getByText("TAPE_NO_COMPENSATE").waitFor();
    await page.keyboard.press("Escape");
    const card = page.getByRole("article", { name: "card.charge of order-5" });
    await card.getByRole("button", { name: "Compensate" }).click();
    await page.getByLabel("Return value").fill('{"receipt": "c-5"}');
    await submit("charged the wrong card", "Compensate");
    await card.waitFor({ state: "detached" });
    const effects = await stage.store.read.effects("default", { run: "order-5" });
    expect(effects.map(({ role, status }) => [role, status])).toEqual([
      ["effect", "CONFIRMED"],
      ["compensation", "PENDING"],
    ]);
    expect(effects[1]!.args).toContain("c-5");
  });

  it("tree: lists children and obligations in order, and compensates an armed one", async () => {
    const { page, stage, submit } = setup();
    const nodes = () => page.getByRole("region", { name: "Tree" }).locator(".node").allInnerTexts();
    await page.goto("/runs/trip-204?tab=tree");
    await soon(async () =>
      (await nodes()).map((text) => text.replaceAll(/\s+/g, " ").replace(/took [\d.]+ s/, "took a while")),
    ).toEqual([
      "compensating trip-204 trip",
      "completed trip-204.1 hotel, started at position 1, took a while",
      "compensated compensation of hotel.book position 0 ref: hotel.book-1",
      "committed compensation of flight.book position 0 ref: flight.book-1",
    ]);
    await page.getByRole("link", { name: "trip-204.1" }).click();
    await page.getByRole("heading", { name: "trip-204.1", level: 1 }).waitFor();
    expect(await page.getByRole("button", { name: "Compensate" }).count()).toBe(0);
    const { intended, sent, booked, armed } = booking(0, "flight.book", { from: "VIE", to: "OSL" });
    const term = await stage.scene.begin("trip-205", "trip", "worker-a");
    const parked = done("term.ended", { reason: "released", notesTaken: 0 });
    await stage.scene.write(term, intended, sent, booked, armed, parked);
    await page.goto("/runs/trip-205?tab=tree");
    await page.getByRole("button", { name: "Compensate" }).click();
    await submit("the customer has called", "Compensate");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.locator(".node .badge", { hasText: "pending" }).waitFor();
    const [obligation] = await stage.store.read.effects("default", { run: "trip-205", role: "compensation" });
    expect(obligation).toMatchObject({ status: "PENDING" });
    expect((await stage.store.read.audit("default"))[0]).toMatchObject({ reason: "the customer has called" });
  });
}
