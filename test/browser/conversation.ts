import type { Browser } from "playwright-core";
import { expect, it } from "vitest";
import type { RecordData } from "../../src/model/records.ts";
import { auditor, chatUpToApproval, question, reserved } from "./chat-scene.ts";
import type { PastClock } from "./past-clock.ts";
import { bound, type Scene, tenant } from "./scene.ts";
import { disposable, openPage, openStage, soon, violations } from "./stage.ts";

/** The conversation of a run: what its tab shows, and what can be done there. */
export function describeConversation(browser: () => Browser): void {
  it("conversation: shows turns, calls and costs, follows the open turn, approves and forks in place", async () => {
    let written: Awaited<ReturnType<typeof chatUpToApproval>> | undefined;
    const write = async (scene: Scene, clock: PastClock): Promise<void> => {
      written = await chatUpToApproval(scene, clock, "chat-8", [auditor("chat-8", 6)]);
    };
    await using stage = disposable(await openStage({ write }));
    await using watched = disposable(await openPage(browser(), stage.serving));
    const { page } = watched;
    const { store, scene } = stage;
    const { term, head } = written!;
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.goto("/runs/chat-8?tab=conversation");
    const turn = (name: string) => page.getByRole("article", { name });
    await turn("Turn 1, treasurer").getByText(question).waitFor();
    const facts = await turn("Turn 1, treasurer").locator("header").first().innerText();
    expect(facts).toContain("openai/gpt-6 · 1,040 in, 96 out · 512 cached · $0.0061 · 2.3 s · 2 attempts · worker-b");
    expect(facts).toContain("asked again after a crash, presumed cost 2,400 tokens, $0.01");
    const sums = page.getByRole("region", { name: "Sums of the conversation" });
    await sums.getByText("2 turns, 3 calls").waitFor();
    await sums.getByText("tokens: 4,886 of 20,000 spent").waitFor(); // 1136 + 1350, and 2400 presumed
    await sums.getByRole("img", { name: "Tokens by turn: at most 1,350, in turn 2 of 2" }).waitFor();
    const search = page.getByRole("region", { name: "Tool call search call-1" });
    expect(await search.innerText()).toMatch(/confirmed[\s\S]*Effect treasury\.search, 1 attempt, token \d+/);
    expect(await page.getByText("Result of call-1").count()).toBe(0); // it is on the card
    await page.getByRole("button", { name: "Copy as JSON" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const copied = JSON.parse((await page.evaluate("navigator.clipboard.readText()")) as string) as object;
    expect(copied).toMatchObject({ run: "chat-8", turns: [{ agent: "treasurer" }, { agent: "treasurer" }] });

    await turn("Turn 2, treasurer").getByText("Sub-agent auditor").click();
    await turn("Turn 2, treasurer").getByText("This run has called no model.").waitFor();
    await turn("Turn 2, treasurer").getByRole("link", { name: "chat-8.6" }).waitFor();

    // The approval is bound to this call, and is answered here.
    const pay = page.getByRole("region", { name: "Tool call pay call-2" });
    expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(1);
    expect(await pay.innerText()).toContain(`bound to ${bound.slice(0, 16)}…`);
    expect(await violations(page)).toEqual([]);
    await pay.getByRole("button", { name: "Approve" }).click();
    const dialog = page.locator("dialog[open]").last();
    await dialog.getByLabel("Reason").fill("the books have it");
    await dialog.getByRole("button", { name: "Approve", exact: true }).click();
    await page.locator("dialog").waitFor({ state: "detached" });
    const [sent] = await store.read.journal(tenant, { run: "chat-8" }, { inbox: true });
    expect(sent!.data).toMatchObject({ name: "tool approval", binds: bound, value: { approved: true } });

    // The open turn types itself from the run's stream, and starts again with the attempt.
    await scene.append(term, head, [reserved(term, 7)]);
    let offset = 0;
    const say = async (...chunks: readonly object[]): Promise<void> => {
      const part = chunks.map((chunk) => ({ part: 8, ...chunk }) as never);
      const [stored] = await store.fenced.appendChunks([
        [term.fence, { streams: [{ name: "parts", from: offset, chunks: part }] }],
      ]);
      expect(stored!.ok).toBe(true);
      offset += chunks.length;
    };
    await turn("Turn 3, treasurer").getByText("is answering…").waitFor();
    await say({ value: { type: "text", text: "Invoice 2026" } }, { value: { type: "text", text: "-117 is" } });
    await turn("Turn 3, treasurer").getByText("Invoice 2026-117 is", { exact: true }).waitFor();
    await say({ rewound: true }, { value: { type: "text", text: "It is paid" } });
    await turn("Turn 3, treasurer").getByText("It is paid", { exact: true }).waitFor();
    expect(await page.getByText("Invoice 2026-117 is", { exact: true }).count()).toBe(0);

    // A fork from the first turn gets the edited message.
    await turn("Turn 1, treasurer").getByRole("button", { name: "Fork from this turn" }).click();
    await dialog.getByLabel("Message").fill("Pay invoice 2026-118.");
    await dialog.getByText("Already happened upstream").waitFor();
    expect(await dialog.getByLabel("Fork at").inputValue()).toBe("0");
    expect(await violations(page, undefined, "dialog[open]")).toEqual([]);
    await dialog.getByLabel("Reason").fill("another invoice");
    await dialog.getByRole("button", { name: "Fork", exact: true }).click();
    await soon(() => page.url()).not.toContain("chat-8");
    const forked = decodeURIComponent(page.url().split("/").at(-1)!);
    const [created] = await store.read.journal(tenant, { run: forked });
    expect((created!.data as RecordData<"run.created">).input).toEqual({ message: "Pay invoice 2026-118." });

    // The list of runs has columns for models where a run has called one.
    await page.goto("/runs");
    const row = page.locator("tbody tr", { hasText: "chat-8" });
    await soon(() => row.locator("td").allInnerTexts()).toEqual(
      expect.arrayContaining(["openai/gpt-6", "4,886", "$0.0235"]),
    );
    expect(await violations(page)).toEqual([]);
    expect(watched.wrong).toEqual([]);
  }, 60_000);
}
