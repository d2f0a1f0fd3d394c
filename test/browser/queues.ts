import type { Browser } from "playwright-core";
import { expect, it } from "vitest";
import type { Store } from "../../src/store/contract/store.ts";
import { crossQueues } from "../kit/crossed-queues.ts";
import { disposable, openPage, openStage, soon, violations } from "./stage.ts";

const tenant = "default";
const claimant = { owner: "worker-a/1", label: "worker-a", reactor: "recovery", ttlMs: 3_600_000 };

/** Two slots, one per key: a runs, c is stuck with its slot, b and d wait. */
async function fill({ intake, claim, fenced }: Store): Promise<void> {
  const limits = { concurrency: 2, rate: { limit: 600, perMs: 60_000, burst: 20 }, perKey: { concurrency: 1 } };
  await intake.putQueue(tenant, "models", { ...limits, counts: "started" });
  const runs = [
    ["a", "acme"],
    ["b", "acme"],
    ["c", "globex"],
    ["d", "initech"],
  ] as const;
  for (const [id, key] of runs)
    await intake.createRuns(tenant, [{ id, workflow: "ask", input: id, queue: "models", key }]);
  const request = { tenant, claimant, nextReactor: "none", staleOf: [], limit: 10, nonce: 1n, workflows: ["ask"] };
  const terms = await claim.find({ ...request, queues: [{ name: "models", room: 10 }] });
  expect(terms.map(({ name }) => name)).toEqual(["a", "c"]);
  const { fence, head } = terms[1]!;
  await fenced.append(fence, {
    after: head,
    records: [
      { kind: "run.stuck", data: { reason: "no cover" } },
      { kind: "term.ended", data: { reason: "released", notesTaken: 0 } },
    ],
  });
}

/** The screens of queues, over a queue that is full. */
export function describeQueues(browser: () => Browser): void {
  it("queues: shows who holds slots and why a run waits, and changes limits with a reason", async () => {
    await using stage = disposable(await openStage({ made: false }));
    await using watched = disposable(await openPage(browser(), stage.serving));
    const { page } = watched;
    const { store } = stage;
    await fill(store);
    const queue = async () => (await store.read.queues(tenant))[0]!;
    const submit = async (reason: string, label: string): Promise<void> => {
      const dialog = page.locator("dialog[open]").last();
      await dialog.getByLabel("Reason").fill(reason);
      await dialog.getByRole("button", { name: label, exact: true }).click();
      await page.locator("dialog").waitFor({ state: "detached" });
    };
    await page.goto("/queues");
    const row = page.locator("tbody tr", { hasText: "models" });
    await soon(() => row.locator("td").allInnerTexts()).toEqual([
      ...["models", "2 of 2", "2", expect.stringMatching(/^\d+(\.\d)? (ms|s|min)/)],
      ...[expect.stringMatching(/^(…|0)\nallowed: 600 per 1 min, 20 at once$/), "full"],
    ]);
    expect(await violations(page)).toEqual([]);
    await page.getByRole("link", { name: "models" }).click();

    const cells = (region: string, name: string) =>
      page.getByRole("region", { name: region }).locator("tbody tr", { hasText: name });
    await cells("Slots held", "globex").waitFor();
    expect(await cells("Slots held", "globex").getAttribute("class")).toBe("highlighted"); // a stuck run keeps a slot
    expect(await cells("Slots held", "acme").getAttribute("class")).toBe("");
    const keys = page.getByRole("region", { name: "Keys" }).locator("tbody tr td:first-child");
    expect((await keys.allInnerTexts()).slice(0, 2)).toEqual(["acme", "initech"]); // longest wait first
    expect(await violations(page)).toEqual([]);

    await cells("Keys", "initech").getByRole("button", { name: "Pause" }).click();
    await submit("too many complaints", "Pause");
    await cells("Keys", "initech").getByText("paused by").waitFor();
    const initech = async () =>
      (await store.read.queuePartitions(tenant, "models")).find(({ key }) => key === "initech");
    expect((await initech())?.paused).toMatchObject({ reason: "too many complaints" });

    await page.getByRole("button", { name: "Set limits" }).click();
    await page.getByRole("group", { name: "The queue" }).getByLabel("Runs at once").fill("3");
    await page.getByRole("group", { name: "Each key" }).getByLabel("Runs at once").fill("");
    expect(await violations(page, undefined, "dialog[open]")).toEqual([]);
    await submit("more quota", "Set limits");
    await page.getByText("2 of 3").waitFor();
    expect((await queue()).override).toEqual({ concurrency: 3, perKey: { concurrency: null } });

    await page.goto("/runs/d");
    const why = page.getByRole("region", { name: "Queue" });
    await why.getByText(/key initech is paused by .*: too many complaints/i).waitFor();
    await page.locator("h1 .badge", { hasText: "queued" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await why.getByRole("link", { name: "models" }).click();

    await page.getByRole("button", { name: "Reset limits" }).click();
    await submit("back to normal", "Reset limits");
    await page.getByText("2 of 2").waitFor();
    expect((await queue()).override).toBeUndefined();
    await page.goto("/runs/b");
    await why.getByText("Queue full: 2 of 2 slots held by a, c").waitFor();
    await why.getByText("Key full: 1 of 1 slots held by a").waitFor();
    await page.goto("/queues/models");
    await page.locator(".screen-head").getByRole("button", { name: "Pause" }).click();
    await submit("a deployment", "Pause");
    await page.locator(".screen-head").getByText("a deployment").waitFor();
    expect((await queue()).paused).toMatchObject({ reason: "a deployment" });
    await page.locator(".screen-head").getByRole("button", { name: "Resume" }).click();
    await submit("deployed", "Resume");
    await page.locator(".screen-head").getByRole("button", { name: "Pause" }).waitFor();
    expect((await queue()).paused).toBeUndefined();
    await crossQueues(store, tenant);
    await page.goto("/runs/load.0");
    await why
      .getByText("load.0 waits for a slot of queue cranes, which lift holds while it waits for lift.0.")
      .waitFor();
    expect(await violations(page)).toEqual([]);
    await page.goto("/runs/lift");
    await why
      .getByText("lift.0 waits for a slot of queue docks, which load holds while it waits for load.0.")
      .waitFor();
    expect(watched.wrong).toEqual([]);
  }, 60_000);
}
