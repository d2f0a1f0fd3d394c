import type { Browser } from "playwright-core";
import { expect, it } from "vitest";
import type { NewRecord } from "../../src/model/records.ts";
import { disposable, openPage, openStage, soon, violations } from "./stage.ts";

const tenant = "default";

/** The screen of builds and the erasure of a run: what they show, and what each action changes in the store. */
export function describeBuilds(browser: () => Browser): void {
  it("builds: shows what drains and what is drained, and erases a run with a reason", async () => {
    await using stage = disposable(await openStage({ made: false }));
    await using watched = disposable(await openPage(browser(), stage.serving));
    const { page } = watched;
    const { store } = stage;
    const submit = async (reason: string, label: string): Promise<void> => {
      const dialog = page.locator("dialog[open]").last();
      await dialog.getByLabel("Reason").fill(reason);
      await dialog.getByRole("button", { name: label, exact: true }).click();
      await page.locator("dialog").waitFor({ state: "detached" });
    };
    await page.goto("/builds");
    await page.getByText("No builds").waitFor();
    for (const build of ["a1", "b2"]) await store.intake.reportBuild(tenant, build, ["pay"]);
    const claimant = { owner: "w/1", label: "worker", reactor: "recovery", ttlMs: 3_600_000, nonce: 7n };
    const [created] = await store.intake.createRuns(
      tenant,
      [{ id: "pinned", workflow: "pay", input: { mail: "ada@example.org" }, build: "a1" }],
      claimant,
    );
    expect(created?.ok && created.term).toBeTruthy();
    await page.reload();
    const row = (build: string) => page.locator("tbody tr", { hasText: build });
    await soon(() => row("a1").innerText()).toMatch(/unserved\s+1\s+0\s+pay/);
    await soon(() => row("b2").innerText()).toMatch(/drained\s+0\s+0\s+pay/);
    await row("a1").getByRole("button", { name: "1", exact: true }).click();
    await page.getByRole("region", { name: "Live runs of a1" }).getByText("pinned").waitFor();
    expect(await violations(page)).toEqual([]);
    await row("b2").getByRole("button", { name: "Make current" }).click();
    await submit("the new release", "Make current");
    await soon(() => row("b2").innerText()).toMatch(/current/);
    expect((await store.read.audit(tenant))[0]).toMatchObject({ reason: "the new release" });
    await row("a1").getByRole("button", { name: "Move runs" }).waitFor();

    const { fence, head } = created!.ok ? created!.term! : (undefined as never);
    const ended: NewRecord = { kind: "run.ended", data: { status: "COMPLETED", notesTaken: 0, outcome: "ada" } };
    await store.fenced.append(fence, { after: head, records: [ended] });
    await page.goto("/runs/pinned?tab=result");
    await page.getByText("ada@example.org").first().waitFor();
    await page.getByRole("button", { name: "Erase", exact: true }).click();
    expect(await violations(page, undefined, "dialog[open]")).toEqual([]);
    await submit("a request of the customer", "Erase for good");
    await page.getByText("payloads erased").waitFor();
    await page.getByText("[erased]").first().waitFor();
    expect(await page.getByText("ada@example.org").count()).toBe(0);
    expect(await page.getByRole("button", { name: "Erase", exact: true }).count()).toBe(0);
    expect(await page.getByRole("button", { name: "Fork", exact: true }).count()).toBe(0);
    expect((await store.read.run(tenant, "pinned"))?.erased).toBe(true);
    expect((await store.read.audit(tenant))[0]).toMatchObject({ action: "run.erase" });
  });
}
