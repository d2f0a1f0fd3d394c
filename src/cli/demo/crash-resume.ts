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
import { waitForExpiry } from "./expiry.ts";
import { cfo } from "./treasury/agent.ts";
import { fileLedger, type Ledger } from "./treasury/ledger.ts";
import { wires, wireVerdict } from "./wire-verdict.ts";

const ttlMs = 1_500;
const day = "2026-11-15";
const run = `treasury-${day}`;
type Worker = DemoProcess<never, FromCrashWorker>;

/** A worker is killed after a wire and before its record. The next one observes the wire and does not pay again. */
export async function crashResumeDemo(screen: Screen): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "tape-crash-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const path = join(folder, "world.jsonl");
  // The director only reads and signals; the workers drive.
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [] }), work: false });
  const workers: Worker[] = [];
  try {
    return await runDemo(screen, app, fileLedger(path), (label, part) => {
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

async function runDemo(
  screen: Screen,
  app: Tape,
  world: Ledger,
  start: (label: string, part: "first" | "second") => Worker,
): Promise<number> {
  screen.line(screen.bold("Tape: crash and resume"));
  screen.line(
    "A treasury agent plans, gets approval, wires and books. Its worker dies after the wire, before recording it.",
  );

  screen.step("Worker A starts the run", "one SQLite file for Tape, another file for the bank, a lease of 1.5 s");
  const a = start("worker-a", "first");
  report(screen, a, await a.receive());
  const open = await gateOf(app);
  screen.line(`   the run waits at gate ${open.name} with ${JSON.stringify(open.payload)}`);

  screen.step("The CFO approves this wire, and no other");
  await app.signal(run, cfo, { approved: true }, { binds: open.binds });
  report(screen, a, await a.receive());

  screen.step("Worker A is killed (SIGKILL)", "the money has moved; the bank's response is lost with the process");
  await a.kill();
  screen.line(`   the journal says: bank.wire ${screen.bad(await statusOf(app))}`);
  screen.line(`   the bank says:    ${wires(world)}`);
  await waitForExpiry(screen, app, { run, ttlMs, holder: "worker A" });

  screen.step("Worker B starts with the same code and takes over", "it replays: the model is not called again");
  const b = start("worker-b", "second");
  let message = await b.receive();
  for (; message.event !== "ended"; message = await b.receive()) report(screen, b, message);
  report(screen, b, message);
  return wireVerdict(screen, app, run, world);
}

async function gateOf(app: Tape): Promise<OpenGate> {
  for (;;) {
    const [open] = await app.gates.list({ run });
    if (open !== undefined) return open;
    await systemClock.sleep(20);
  }
}

const statusOf = async (app: Tape): Promise<string> => (await app.effects.list({ run }))[0]?.status ?? "nothing";

function report(screen: Screen, worker: Worker, message: FromCrashWorker): void {
  const texts = {
    planned: () => "called the model for a plan",
    wired: () => `${screen.good("wired")} the money`,
    observed: () => `did not wire again: it ${screen.good("observed")} the wire at the bank`,
    ended: () => `${screen.good("finished")} the run: ${JSON.stringify((message as { outcome?: unknown }).outcome)}`,
  };
  screen.line(`   ${worker.label} ${texts[message.event]()}`);
}
