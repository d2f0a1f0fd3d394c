import type { Browser } from "playwright-core";
import { expect, it } from "vitest";
import { sinkLease } from "../../src/model/dead-letter.ts";
import { passAll, refuse } from "./sinks-scene.ts";
import { disposable, openPage, openStage, settled, soon, violations } from "./stage.ts";

const tenant = "default";
const hour = 3_600_000;

/** The screens of sinks: what they show, and what each action changes in the store. */
export function describeSinks(browser: () => Browser): void {
  it("sinks: shows what needs an operator, and changes it with a reason", async () => {
    await using stage = disposable(await openStage({ made: false }));
    await using watched = disposable(await openPage(browser(), stage.serving));
    const { page } = watched;
    const { store, scene } = stage;
    await page.goto("/sinks");
    await page.getByText("No sinks").waitFor();
    const term = await scene.acquire({ name: sinkLease("billing") }, "worker-a", "free", {
      ...{ reactor: "sink", ttlMs: hour },
    });
    for (const id of ["a", "b", "c"]) {
      await store.intake.createRuns(tenant, [{ id, workflow: "pay", input: id }]);
      await refuse(store, term, (await store.read.run(tenant, id))!.journal, `no invoice ${id}`);
    }
    await passAll(store, term);
    const row = async () => (await store.read.sinks(tenant))[0]!;
    const eventsIn = async (state: "OPEN" | "REPLAY" | "DISCARDED") =>
      (await store.read.deadLetters(tenant, "billing", { state })).map(({ error }) => error);
    const submit = async (reason: string, label: string): Promise<void> => {
      const dialog = page.locator("dialog[open]").last();
      await dialog.getByLabel("Reason").fill(reason);
      await dialog.getByRole("button", { name: label, exact: true }).click();
      await page.locator("dialog").waitFor({ state: "detached" });
    };
    const headButton = (name: string) =>
      page.locator(".screen-head").first().getByRole("button", { name, exact: true });

    await page.goto("/");
    await page.getByRole("region", { name: "Needs attention" }).getByText("3 open dead letters").click();
    await soon(() => page.url()).toMatch(/\/sinks\/billing$/);
    await settled(page);
    const facts = page.getByRole("region", { name: "State" });
    await soon(() => facts.locator("div", { hasText: "Lag" }).last().innerText()).toBe("Lag\nnone");
    const letters = page.getByRole("region", { name: "Dead letters" });
    await soon(() => letters.locator("tbody tr").count()).toBe(3);
    await letters.locator("tbody tr", { hasText: "no invoice b" }).getByText("b", { exact: true }).waitFor();
    expect(await violations(page)).toEqual([]);

    await letters.locator("tbody tr", { hasText: "no invoice b" }).getByRole("button", { name: "Replay" }).click();
    await submit("it has the invoice now", "Replay");
    await soon(() => eventsIn("REPLAY")).toEqual(["no invoice b"]);
    expect((await store.read.audit(tenant))[0]).toMatchObject({
      action: "sink.replay",
      reason: "it has the invoice now",
    });
    await letters.getByRole("button", { name: "Discard all" }).click();
    await page.locator("dialog[open]").getByText("Discard 2 dead letters of billing").waitFor();
    await submit("tests", "Discard all");
    await soon(() => eventsIn("DISCARDED")).toEqual(["no invoice a", "no invoice c"]);
    await letters.getByText("No dead letters").waitFor();
    await letters.getByLabel("State").selectOption("DISCARDED");
    await soon(() => letters.locator("tbody tr").count()).toBe(2);
    expect(await letters.getByRole("button").count()).toBe(0);

    await headButton("Pause").click();
    await submit("maintenance", "Pause");
    await page.locator(".screen-head").getByText("paused by").waitFor();
    expect(await row()).toMatchObject({ state: "paused", paused: { reason: "maintenance" } });
    await headButton("Rewind").click();
    const dialog = page.locator("dialog[open]");
    await dialog.getByLabel("Reason").fill("the receiver lost a day");
    expect(await dialog.getByRole("button", { name: "Rewind" }).isDisabled()).toBe(true);
    await dialog.getByRole("textbox", { name: "Event" }).fill("999:1:5");
    await dialog.getByRole("button", { name: "Rewind" }).click();
    await dialog.getByText("TAPE_NOT_FOUND").waitFor();
    expect((await row()).lagMs).toBeLessThan(60_000);
    await dialog.getByLabel("Continue from").selectOption("start");
    await submit("the receiver lost a day", "Rewind");
    await facts.getByText("nothing yet").waitFor();
    expect((await row()).passedAt).toBeUndefined();
    await headButton("Resume").click();
    await submit("it is back", "Resume");
    await page.getByText("No process sends its events").waitFor();
    expect((await row()).state).toBe("off");
    await headButton("Forget").click();
    await submit("no longer used", "Forget");
    await facts.getByText("no checkpoint").waitFor();
    expect((await row()).lease.checkpoint).toBeUndefined();
    expect(await headButton("Forget").count()).toBe(0);
    await page.goto("/sinks/none");
    await page.getByText("Sink none not found").waitFor();
    expect(watched.wrong).toEqual([]);
  }, 60_000);
}
