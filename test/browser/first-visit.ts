import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { expect, it } from "vitest";
import { z } from "zod";
import { Tape } from "../../src/host/tape.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { auditor, chatUpToApproval } from "./chat-scene.ts";
import { tenant } from "./scene.ts";
import { disposable, openPage, openStage, soon, violations } from "./stage.ts";

const terms = gate("terms", {
  schema: z.strictObject({
    rate: z.number().min(0).max(10).describe("Per cent and year"),
    years: z.int().min(1),
    currency: z.enum(["EUR", "USD"]),
    memo: z.string().max(40).optional(),
  }),
});
const split = gate("split", { schema: z.object({ parts: z.array(z.object({ to: z.string(), cents: z.int() })) }) });
const sign = gate("sign", { schema: z.strictObject({ approved: z.boolean(), reason: z.string(), seat: z.string() }) });
const loan = workflow("loan", async (tape) => {
  return [await tape.gate(terms), await tape.gate(split), await tape.gate(sign)];
});
const runner = createRunner({ workflows: [loan], gates: [terms, split, sign] });

/** Types a command that the page shows into a shell, with the program of this checkout. */
async function type(command: string): Promise<void> {
  expect(command).toMatch(/^npx durable-tape start /);
  const bin = fileURLToPath(new URL("../../bin/durable-tape.js", import.meta.url));
  const own = command.replace("npx durable-tape", '"$NODE" "$BIN"');
  const child = spawn("sh", ["-c", own], {
    env: { ...process.env, NODE: process.execPath, BIN: bin },
    stdio: ["ignore", "ignore", "inherit"],
  });
  expect(await once(child, "exit")).toEqual([0, null]);
}

const dialog = (page: Page) => page.locator("dialog[open]");

/** What a newcomer meets: the empty store, the first run, and the form of a gate. */
export function describeFirstVisit(browser: () => Browser): void {
  it("guides through an empty store up to its first run, then gets out of the way", async () => {
    await using stage = disposable(await openStage({ made: false }));
    await using watched = disposable(await openPage(browser(), stage.serving));
    const { page } = watched;
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.goto("/");
    const guide = page.getByRole("region", { name: "Nothing has run here yet" });
    await guide.getByText("npx durable-tape init my-agent").waitFor();
    await guide.getByText(`npx tape-reactors --store ${stage.serving.url}`).waitFor();
    expect(await violations(page)).toEqual([]);
    await using app = await Tape.open({ store: stage.store, runner });
    await guide.getByText(/serves loan/).waitFor();
    await guide.getByRole("button", { name: "Copy: npx durable-tape start loan" }).click();
    await guide.getByText("Copied").waitFor();
    await type((await page.evaluate("navigator.clipboard.readText()")) as string);
    await guide.waitFor({ state: "detached" });
    await page.getByRole("region", { name: "Latest runs" }).getByText("loan").waitFor();
    expect(await app.runs.list()).toHaveLength(1);
    expect(watched.wrong).toEqual([]);
  }, 60_000);

  it("a gate with a schema has a form, and sends only what fits", async () => {
    await using stage = disposable(await openStage({ made: false }));
    await using watched = disposable(await openPage(browser(), stage.serving));
    const { page } = watched;
    await using app = await Tape.open({ store: stage.store, runner });
    const run = await app.start(loan, undefined, { id: "loan-7" });
    await page.goto("/runs/loan-7");
    const sent = async () => (await stage.store.read.journal(tenant, { run: "loan-7" }, { inbox: true })).length;
    await page.getByRole("button", { name: "Answer" }).click();
    await dialog(page).getByLabel("Reason").fill("as agreed");
    await dialog(page).getByLabel("rate").fill("12");
    await dialog(page).getByLabel("years").fill("3");
    await dialog(page).getByLabel("currency").selectOption("EUR");
    await dialog(page).getByRole("button", { name: "Answer", exact: true }).click();
    expect(await dialog(page).getByLabel("rate").evaluate("node => node.validationMessage")).not.toBe("");
    expect(await sent()).toBe(0);
    expect(await violations(page)).toEqual([]);
    await dialog(page).getByLabel("rate").fill("2.5");
    await dialog(page).getByRole("button", { name: "Answer", exact: true }).click();
    await dialog(page).waitFor({ state: "detached" });
    await soon(sent).toBe(1);

    // Deeper than a form: JSON, checked before it is sent.
    await page.getByRole("article", { name: "Gate split of loan-7" }).waitFor();
    await page.getByRole("button", { name: "Answer" }).click();
    await dialog(page).getByLabel("Reason").fill("as agreed");
    await dialog(page).getByLabel("Value sent").fill('{"parts": [{"to": "ada", "cents": 1.5}]}');
    await dialog(page).getByRole("button", { name: "Answer", exact: true }).click();
    await dialog(page).getByText("parts[0].cents must be integer").waitFor();
    expect(await sent()).toBe(1);
    await dialog(page).getByLabel("Value sent").fill('{"parts": [{"to": "ada", "cents": 150}]}');
    await dialog(page).getByRole("button", { name: "Answer", exact: true }).click();
    await dialog(page).waitFor({ state: "detached" });

    // An approval keeps its two buttons; they and the reason fill in what the schema asks for.
    await page.getByRole("article", { name: "Gate sign of loan-7" }).waitFor();
    await page.getByRole("button", { name: "Reject" }).click();
    await dialog(page).getByLabel("seat").waitFor();
    expect(await dialog(page).getByLabel("approved").count()).toBe(0);
    await dialog(page).getByLabel("Reason").fill("too long");
    await dialog(page).getByLabel("seat").fill("Paris");
    await dialog(page).getByRole("button", { name: "Reject", exact: true }).click();
    await dialog(page).waitFor({ state: "detached" });
    expect(await run.result()).toMatchObject([
      { value: { rate: 2.5, years: 3, currency: "EUR" } },
      { value: { parts: [{ to: "ada", cents: 150 }] } },
      { value: { approved: false, reason: "too long", seat: "Paris" } },
    ]);
    expect(watched.wrong).toEqual([]);
  }, 90_000);

  it("counts no process that has missed two reports", async () => {
    await using stage = disposable(
      await openStage({
        async write(_, clock, store) {
          clock.elapse(80 * 60_000); // a minute before the present
          const body = { reactors: { outbox: { perMinute: 7, errorsPerMinute: 0 } } };
          clock.elapse(20_000);
          await store.intake.reportProcess(tenant, { owner: "dead/1", label: "killed-one", body });
          clock.elapse(35_000);
          await store.intake.reportProcess(tenant, { owner: "live/1", label: "live-one", body });
        },
      }),
    );
    await using watched = disposable(await openPage(browser(), stage.serving));
    const { page } = watched;
    await page.goto("/health");
    const processes = page.getByRole("region", { name: "Processes" });
    await processes.getByText("1 reporting; 1 silent and not counted").waitFor();
    expect(await processes.locator("tbody tr", { hasText: "killed-one" }).innerText()).toMatch(/no report for 4\d s/);
    const outbox = page.getByRole("region", { name: "Reactors" }).locator("tbody tr", { hasText: "outbox" });
    expect((await outbox.locator("td").allInnerTexts()).slice(3)).toEqual(["7", "0", "0", "live-one"]);
    expect(watched.wrong).toEqual([]);
  }, 60_000);

  it("a run of an agent opens with its conversation; its streams have a tab", async () => {
    let term: Awaited<ReturnType<typeof chatUpToApproval>>["term"] | undefined;
    await using stage = disposable(
      await openStage({
        async write(scene, clock) {
          ({ term } = await chatUpToApproval(scene, clock, "chat-9", [auditor("chat-9", 6)]));
        },
      }),
    );
    await using watched = disposable(await openPage(browser(), stage.serving));
    const { page } = watched;
    const tabs = page.getByRole("navigation", { name: "Views of the run" });
    await page.goto("/runs/chat-9");
    await soon(() => tabs.locator("[aria-current=page]").allInnerTexts()).toEqual(["Conversation"]);
    await page.getByRole("article", { name: "Turn 1, treasurer" }).waitFor();
    const say = (name: string, from: number, ...texts: string[]) =>
      stage.store.fenced.appendChunks([
        [term!.fence, { streams: [{ name, from, chunks: texts.map((value) => ({ part: 3, value })) }] }],
      ]);
    await say("answer", 0, "to ", "be");
    await say("log", 0, "one line\n");
    await tabs.getByRole("link", { name: "Streams" }).click();
    const list = page.getByRole("list", { name: "Streams of the run" });
    await soon(() => list.getByRole("button").count()).toBe(2);
    await list.getByRole("button", { name: "answer" }).click();
    await page.getByRole("article", { name: "Stream answer" }).getByText("to be").waitFor();
    await say("answer", 2, " or not");
    await page.getByRole("article", { name: "Stream answer" }).getByText("to be or not").waitFor();
    await list.getByRole("button", { name: "log" }).click();
    await page.getByRole("article", { name: "Stream log" }).getByText("one line").waitFor();
    expect(await violations(page)).toEqual([]);
    expect(watched.wrong).toEqual([]);
  }, 60_000);
}
