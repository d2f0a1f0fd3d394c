import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../base/clock.ts";
import type { OpenGate } from "../../host/gates.ts";
import { Tape } from "../../host/tape.ts";
import { createRunner } from "../../sdk/workflow.ts";
import type { Screen } from "../screen.ts";
import type { FromCrashWorker } from "./crash-worker.ts";
import { DemoProcess } from "./demo-process.ts";
import { cfo } from "./treasury/agent.ts";
import { fileLedger, type Ledger } from "./treasury/ledger.ts";
import { wires, wireVerdict } from "./wire-verdict.ts";

const ttlMs = 1_500;
const day = "2026-11-15";
const run = `treasury-${day}`;
type Worker = DemoProcess<never, FromCrashWorker>;

/** A process is killed between a wire and the record of it. Another finds out what happened, and does not wire again. */
export async function crashResumeDemo(screen: Screen): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "tape-crash-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const path = join(folder, "world.jsonl");
  // The director only looks and signals; the workers drive.
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [] }), work: false });
  const workers: Worker[] = [];
  try {
    return await play(screen, app, fileLedger(path), (label, part) => {
      const program = new URL("crash-worker.ts", import.meta.url);
      const worker: Worker = new DemoProcess(label, program, [url, path, run, day, String(ttlMs), part]);
      workers.push(worker);
      return worker;
    });
  } finally {
    for (const worker of workers) await worker.kill();
    await app.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function play(
  screen: Screen,
  app: Tape,
  world: Ledger,
  start: (label: string, part: "first" | "second") => Worker,
): Promise<number> {
  screen.line(screen.bold("Tape: crash and resume"));
  screen.line("A treasury agent decides, asks, wires and books. It dies after the wire, before anything recorded it.");

  screen.step("Worker A starts the run", "one SQLite file for Tape, another file for the bank; a lease of 1.5 s");
  const a = start("worker-a", "first");
  report(screen, a, await a.receive());
  const open = await gateOf(app);
  screen.line(`   the run waits at the gate ${open.name}, which shows ${JSON.stringify(open.payload)}`);

  screen.step("The CFO approves this very wire");
  await app.signal(run, cfo, { approved: true }, { binds: open.binds });
  report(screen, a, await a.receive());

  screen.step("Worker A is killed (SIGKILL)", "the money has moved; the answer of the bank is lost with the process");
  await a.kill();
  screen.line(`   the journal says: bank.wire ${screen.bad(await statusOf(app))}`);
  screen.line(`   the bank says:    ${wires(world)}`);
  await waitForExpiry(screen, app);

  screen.step("Worker B starts with the same code and takes over", "it replays: the model is not asked again");
  const b = start("worker-b", "second");
  let heard = await b.receive();
  for (; heard.say !== "ended"; heard = await b.receive()) report(screen, b, heard);
  report(screen, b, heard);
  return wireVerdict(screen, app, run, world);
}

async function gateOf(app: Tape): Promise<OpenGate> {
  for (;;) {
    const [open] = await app.gates.list({ run });
    if (open !== undefined) return open;
    await systemClock.sleep(20);
  }
}

async function waitForExpiry(screen: Screen, app: Tape): Promise<void> {
  for (;;) {
    const lease = await app.store.read.lease(app.tenant, { run });
    if (lease === undefined || lease.state !== "HELD") break;
    screen.bar("lease of worker A", lease.remainingMs, ttlMs);
    await systemClock.sleep(Math.min(100, lease.remainingMs));
  }
  screen.barDone();
  screen.line("   the lease has run out");
}

const statusOf = async (app: Tape): Promise<string> => (await app.effects.list({ run }))[0]?.status ?? "nothing";

function report(screen: Screen, worker: Worker, message: FromCrashWorker): void {
  const said = {
    "asked the model": () => "asked the model for a plan",
    wired: () => `${screen.good("wired")} the money`,
    looked: () => `did not wire again: it ${screen.good("looked")}, and found the wire at the bank`,
    ended: () => `${screen.good("finished")} the run: ${JSON.stringify((message as { outcome?: unknown }).outcome)}`,
  };
  screen.line(`   ${worker.label} ${said[message.say]()}`);
}
