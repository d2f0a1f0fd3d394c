import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../base/clock.ts";
import { Tape } from "../../../host/tape.ts";
import { loadPeer } from "../../../model/peer.ts";
import { createRunner } from "../../../sdk/workflow.ts";
import type { Screen } from "../../screen.ts";
import { DemoProcess } from "../demo-process.ts";
import { waitForExpiry } from "../expiry.ts";
import { termLines } from "../term-lines.ts";
import { fileLedger, type Ledger } from "../treasury/ledger.ts";
import { wires } from "../wire-verdict.ts";
import { DemoPage } from "./page.ts";
import { PageReader } from "./page-reader.ts";
import type { AgentPart, FromAgentWorker } from "./worker.ts";

const ttlMs = 1_500;
const run = "chat-7";
type Worker = DemoProcess<never, FromAgentWorker>;

/** A stock agent of the AI SDK streams to a page. Its worker is killed in mid-sentence, the next one after the wire. */
export async function agentDemo(screen: Screen, options: { readonly stay: boolean }): Promise<number> {
  await loadPeer("ai", "demo agent");
  const folder = await mkdtemp(join(tmpdir(), "tape-agent-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const ledger = join(folder, "world.jsonl");
  // The director only reads; the workers drive.
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [] }), work: false });
  const page = await DemoPage.open(app, run);
  const reader = new PageReader(page.url);
  const workers: Worker[] = [];
  const start = (label: string, part: AgentPart): Worker => {
    const program = new URL("worker.ts", import.meta.url);
    const worker: Worker = new DemoProcess(label, program, [url, ledger, run, String(ttlMs), part]);
    workers.push(worker);
    return worker;
  };
  try {
    const code = await runDemo(screen, { app, world: fileLedger(ledger), page, reader, start });
    if (options.stay) await stayOpen(screen, page);
    return code;
  } finally {
    for (const worker of workers) await worker.kill();
    await reader.close();
    await page.close();
    await app.close();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Scene {
  readonly app: Tape;
  readonly world: Ledger;
  readonly page: DemoPage;
  readonly reader: PageReader;
  readonly start: (label: string, part: AgentPart) => Worker;
}

async function runDemo(screen: Screen, { app, world, page, reader, start }: Scene): Promise<number> {
  screen.line(screen.bold("Tape: an agent that is killed twice"));
  screen.line(
    "A ToolLoopAgent of the Vercel AI SDK looks up an invoice, wires money and reports. It streams to a page.",
  );
  screen.line(screen.dim("The model is a script in this program: no network, no key. Everything else is real."));
  screen.line(`the page: ${page.url}`);

  screen.step("Worker A starts the run");
  const a = start("worker-a", "mid-sentence");
  await until(screen, a, "mid-sentence");
  await pageShows(reader, "today, so ");
  screen.line(`   the page shows: ${reader.text}`);
  screen.step("Worker A is killed in mid-sentence (SIGKILL)", "its second model call is lost; the provider bills it");
  await a.kill();
  await waitForExpiry(screen, app, { run, ttlMs, holder: "worker A" });

  screen.step("Worker B takes over", "the first model call is replayed; the second one is made again");
  const b = start("worker-b", "after the wire");
  await until(screen, b, "wired");
  await pageShows(reader, "now.");
  screen.line(`   the page took back ${reader.resets} half sentence and shows: ${reader.steps.at(-1)}`);
  screen.step("Worker B is killed after the wire (SIGKILL)", "the bank's response is lost with the process");
  await b.kill();
  screen.line(`   the journal says: bank.wire ${screen.bad(await wireStatus(app))}`);
  screen.line(`   the bank says:    ${wires(world)}`);
  await waitForExpiry(screen, app, { run, ttlMs, holder: "worker B" });

  screen.step("Worker C takes over", "both model calls are replayed; the wire is observed, not repeated");
  const c = start("worker-c", "to the end");
  await until(screen, c, "ended");
  await pageShows(reader, "books.");
  screen.line(`   the page shows: ${reader.text}`);
  return await verdict(screen, { app, world, reader });
}

async function verdict(
  screen: Screen,
  { app, world, reader }: Pick<Scene, "app" | "world" | "reader">,
): Promise<number> {
  screen.step("The term history", "who owned the run, from when to when, and why");
  for (const line of termLines(await app.store.read.terms(app.tenant, { run }))) screen.line(`   ${line}`);
  let recorded = 0;
  let presumed = 0;
  for await (const { kind } of app.journal(run)) {
    if (kind === "decision.made") recorded++;
    if (kind === "budget.presumed") presumed++;
  }
  const made = world.entries().filter(({ kind }) => kind === "model").length;
  const lost = made - recorded;
  const correct = recorded === 3 && lost === 1 && presumed === 1 && wires(world) === "1 wire" && reader.resets === 1;
  const paint = correct ? screen.good : screen.bad;
  screen.line();
  screen.line(`run: ${(await app.runs.get(run))?.status ?? "gone"}`);
  screen.line(paint(`model calls: ${recorded}, and ${lost} lost; ${presumed} charged as presumed`));
  screen.line(paint(`world: ${wires(world)}`));
  return correct ? 0 : 1;
}

/** Reports the messages of a worker up to this one. */
async function until(screen: Screen, worker: Worker, event: FromAgentWorker["event"]): Promise<void> {
  for (;;) {
    const message = await worker.receive();
    const texts = {
      called: () => `called the model, turn ${(message as { turn: number }).turn}`,
      "mid-sentence": () => "streams an answer",
      wired: () => `${screen.good("wired")} the money`,
      observed: () => `did not wire again: it ${screen.good("observed")} the wire at the bank`,
      ended: () => `${screen.good("finished")} the run`,
    };
    screen.line(`   ${worker.label} ${texts[message.event]()}`);
    if (message.event === event) return;
  }
}

/** Longer than the lease of a dead worker and the slowest machine; a demo must not hang. */
const maxWaitMs = 30_000;

async function pageShows(reader: PageReader, text: string): Promise<void> {
  for (const until = systemClock.mono() + maxWaitMs; !reader.text.endsWith(text); ) {
    if (systemClock.mono() > until) throw new Error(`the page does not show "${text}", but "${reader.text}"`);
    await systemClock.sleep(20);
  }
}

const wireStatus = async (app: Tape): Promise<string> =>
  (await app.effects.list({ run })).find(({ name }) => name === "bank.wire")?.status ?? "nothing";

async function stayOpen(screen: Screen, page: DemoPage): Promise<void> {
  screen.line(`the page stays at ${page.url} until Ctrl-C`);
  await new Promise<void>((resolve) => process.once("SIGINT", () => resolve()));
}
