import type { Browser } from "playwright-core";
import { expect, it } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { disposable, openPage, openStage, soon, violations } from "./stage.ts";

const runner = createRunner({ workflows: [] });

/** A program on this store, with a label of its own. */
async function program(label: string, store: Store, work: boolean): Promise<Tape> {
  const before = process.env.TAPE_REPLICA_ID;
  process.env.TAPE_REPLICA_ID = label;
  try {
    return await Tape.open({ store, runner, work });
  } finally {
    if (before === undefined) delete process.env.TAPE_REPLICA_ID;
    else process.env.TAPE_REPLICA_ID = before;
  }
}

/** A store that fails for the outbox alone. */
function withoutOutbox(store: Store): Store {
  const find: Store["claim"]["find"] = (request) =>
    request.nextReactor === "outbox" ? Promise.reject(new Error("no outbox")) : store.claim.find(request);
  return { ...store, claim: { ...store.claim, find } };
}

/** Processes, standbys and failing reactors, from the reports of real programs. */
export function describeProcesses(browser: () => Browser): void {
  it("names the holder and standby of a singleton, and a reactor's replicas and errors", async () => {
    await using stage = disposable(await openStage({ made: false }));
    await using watched = disposable(await openPage(browser(), stage.serving));
    await using one = await program("replica-one", stage.store, false);
    const { page } = watched;
    await page.goto("/health");
    const body = ({ abortSignal }: { readonly abortSignal: AbortSignal }): Promise<void> =>
      new Promise((resolve) => abortSignal.addEventListener("abort", () => resolve(), { once: true }));
    await one.singleton("sweeper", body);
    await soon(() => one.singletons[0]?.state).toBe("holder");
    await using two = await program("replica-two", withoutOutbox(stage.store), true);
    await two.singleton("sweeper", body);
    const row = (table: string, name: string) =>
      page.getByRole("region", { name: table }).locator("tbody tr", { hasText: name });
    const cells = (table: string, name: string) => row(table, name).locator("td").allInnerTexts();
    await soon(async () => (await cells("Processes", "replica-one"))[4]).toBe("sweeper: holder");
    await soon(async () => (await cells("Processes", "replica-two"))[4]).toBe("sweeper: standby");
    await soon(async () => (await cells("Reactors", "outbox")).at(-1)).toBe("replica-two");
    expect(Number((await cells("Reactors", "outbox"))[4])).toBeGreaterThan(0);
    expect(await row("Reactors", "outbox").getAttribute("class")).toBe("highlighted");
    expect((await cells("Reactors", "timers")).slice(3, 5)).toEqual(["0", "0"]);
    expect(await violations(page)).toEqual([]);
    await page.goto("/leases");
    await soon(async () =>
      (await cells("Singletons", "sweeper")).slice(2, 4).map((text) => text.split("\n")[0]),
    ).toEqual(["replica-one", "replica-two"]);
    await page.getByRole("button", { name: "sweeper" }).click();
    await page.locator("dialog dd", { hasText: "replica-two" }).waitFor();
    await page.keyboard.press("Escape");
    await one.close();
    await soon(async () =>
      (await cells("Singletons", "sweeper")).slice(2, 4).map((text) => text.split("\n")[0]),
    ).toEqual(["replica-two", "none"]);
    await page.goto("/health");
    await soon(() => row("Processes", "replica").count()).toBe(1);
    expect(watched.wrong).toEqual([]);
  }, 60_000);
}
