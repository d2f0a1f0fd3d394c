import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { booking } from "./saga.ts";
import { done } from "./scene.ts";
import { type Stage, soon } from "./stage.ts";

interface Place {
  readonly page: Page;
  readonly stage: Stage;
  /** Says why, and does it. */
  readonly give: (reason: string, label: string) => Promise<void>;
}

/** What a person may do about an act in doubt or one that must be undone, on the page and the store of the other flows. */
export function describeDoubts(at: () => Place): void {
  it("doubt: it did not happen, and that is what the store holds, with who and why", async () => {
    const { page, stage, give } = at();
    await page.goto("/doubt");
    const card = page.getByRole("article", { name: "bank.wire of payout-77" });
    await card.getByText("1; the last").waitFor();
    await card.getByText("none: a person must say").waitFor();
    await card.getByText("All that was recorded").click();
    await card.getByRole("figure", { name: "effect.observed" }).getByText("the bank is closed").waitFor();
    await card.getByRole("button", { name: "It did not" }).click();
    await give("looked at the account", "It did not");
    await card.waitFor({ state: "detached" });
    const [effect] = await stage.store.read.effects("default", { run: "payout-77" });
    expect(effect).toMatchObject({ status: "FAILED", reason: "operator" });
    const [entry] = await stage.store.read.audit("default");
    expect(entry).toMatchObject({ action: "resolve", reason: "looked at the account" });
  });

  it("doubt: it happened, with what it returned; a stuck run goes on", async () => {
    const { page, stage, give } = at();
    await stage.scene.doubt("payout-78");
    await page.goto("/runs/payout-78");
    await page.getByRole("button", { name: "It happened" }).click();
    await page.getByLabel("What it returned").fill("receipt r-7");
    await give("seen at the bank", "It happened");
    await page.getByText("This is not valid JSON").waitFor();
    await page.getByLabel("What it returned").fill('{"receipt": "r-7"}');
    await give("seen at the bank", "It happened");
    await page.locator("dialog").waitFor({ state: "detached" });
    const [effect] = await stage.store.read.effects("default", { run: "payout-78" });
    expect(effect).toMatchObject({ status: "CONFIRMED", outcome: expect.stringContaining("r-7") });
    await page.goto("/doubt");
    await page.getByRole("article", { name: "refund-12 is stuck" }).getByRole("button", { name: "Redrive" }).click();
    await give("the old code is back", "Redrive");
    await soon(async () => (await stage.store.read.run("default", "refund-12"))?.status).toBe("RUNNABLE");
  });

  it("doubt: look again makes it due at once and settles nothing; who asked, and why, is on the card", async () => {
    const { page, stage, give } = at();
    const due = async () =>
      (await stage.store.read.agenda("default")).filter(({ reactor }) => reactor === "reconciler");
    expect((await due()).every(({ inMs }) => inMs > 0)).toBe(true);
    // On the timeline it stands behind the line that is now.
    await page.goto("/runs/payout-80");
    await page.getByText("next by itself: effect bank.wire, next try by the reconciler in 1 h").waitFor();
    expect(await page.locator(".point.future").count()).toBe(1);
    await page.goto("/doubt");
    const card = page.getByRole("article", { name: "bank.wire of payout-80" });
    await card.getByText(/^in 1 h/).waitFor();
    await card.getByRole("button", { name: "Look again" }).click();
    await give("the bank has opened", "Look again");
    await card.getByText("is due").waitFor();
    await card.getByText("the bank has opened").waitFor();
    expect((await due()).some(({ inMs }) => inMs === 0)).toBe(true);
    expect(await stage.store.read.effects("default", { run: "payout-80" })).toMatchObject([{ status: "UNKNOWN" }]);
    expect((await stage.store.read.audit("default"))[0]).toMatchObject({ reason: "the bank has opened" });
  });

  it("doubt: compensate takes it as done and has it undone; without an inverse it is refused", async () => {
    const { page, stage, give } = at();
    await stage.scene.doubt("order-5", { name: "card.charge" });
    await page.goto("/doubt");
    const wire = page.getByRole("article", { name: "bank.wire of payout-80" });
    await wire.getByRole("button", { name: "Compensate" }).click();
    await give("paid the wrong one", "Compensate");
    await page.getByText("TAPE_NO_COMPENSATE").waitFor();
    await page.keyboard.press("Escape");
    const card = page.getByRole("article", { name: "card.charge of order-5" });
    await card.getByRole("button", { name: "Compensate" }).click();
    await page.getByLabel("What it returned").fill('{"receipt": "c-5"}');
    await give("charged the wrong card", "Compensate");
    await card.waitFor({ state: "detached" });
    const effects = await stage.store.read.effects("default", { run: "order-5" });
    expect(effects.map(({ role, status }) => [role, status])).toEqual([
      ["effect", "CONFIRMED"],
      ["compensation", "PENDING"],
    ]);
    expect(effects[1]!.args).toContain("c-5");
  });

  it("tree: children and what is owed, in the order of undoing; what is armed can be undone now", async () => {
    const { page, stage, give } = at();
    const nodes = () => page.getByRole("region", { name: "Tree" }).locator(".node").allInnerTexts();
    await page.goto("/runs/trip-204?tab=tree");
    await soon(async () =>
      (await nodes()).map((text) => text.replaceAll(/\s+/g, " ").replace(/took [\d.]+ s/, "took a while")),
    ).toEqual([
      "compensating trip-204 trip",
      "completed trip-204.1 hotel, started at 1, took a while",
      "compensated undo hotel.book at 0 ref: hotel.book-1",
      "committed undo flight.book at 0 ref: flight.book-1",
    ]);
    await page.getByRole("link", { name: "trip-204.1" }).click();
    await page.getByRole("heading", { name: "trip-204.1", level: 1 }).waitFor();
    expect(await page.getByRole("button", { name: "Compensate" }).count()).toBe(0);
    const { intended, sent, booked, owed } = booking(0, "flight.book", { from: "VIE", to: "OSL" });
    const term = await stage.scene.begin("trip-205", "trip", "worker-a");
    const parked = done("term.ended", { end: "released", taken: 0 });
    await stage.scene.write(term, intended, sent, booked, owed, parked);
    await page.goto("/runs/trip-205?tab=tree");
    await page.getByRole("button", { name: "Compensate" }).click();
    await give("the customer has called", "Compensate");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.locator(".node .badge", { hasText: "pending" }).waitFor();
    const [obligation] = await stage.store.read.effects("default", { run: "trip-205", role: "compensation" });
    expect(obligation).toMatchObject({ status: "PENDING" });
    expect((await stage.store.read.audit("default"))[0]).toMatchObject({ reason: "the customer has called" });
  });
}
