import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { Tape } from "../../host/tape.ts";
import { createRunner } from "../../sdk/workflow.ts";
import type { FromWorker, ToWorker } from "../dev/messages.ts";
import type { Screen } from "../screen.ts";
import { DemoProcess } from "./demo-process.ts";
import { cfo } from "./treasury/agent.ts";
import { fileLedger, type Ledger } from "./treasury/ledger.ts";
import { wires, wireVerdict } from "./wire-verdict.ts";

const ttlMs = 3_000;
const day = "2026-11-15";
const run = `treasury-${day}`;
const invoice = `sweep-${day}`;
type Worker = DemoProcess<ToWorker, FromWorker>;

/** The bank pays and its response is lost. The reconciler observes the payment instead of repeating it. */
export async function unknownDemo(screen: Screen): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "tape-unknown-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const path = join(folder, "world.jsonl");
  // The director only reads and signals; the worker drives.
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [] }), work: false });
  const program = new URL("../dev/worker.ts", import.meta.url);
  const worker: Worker = new DemoProcess("worker-a", program, [url, path, String(ttlMs)]);
  try {
    return await runDemo(screen, app, fileLedger(path), worker);
  } finally {
    await worker.kill();
    await app.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function runDemo(screen: Screen, app: Tape, world: Ledger, worker: Worker): Promise<number> {
  screen.line(screen.bold("Tape: the lost response"));
  screen.line("A wire is sent and its response is lost. Did the money move? Tape records UNKNOWN and finds out.");

  screen.step("The agent plans a wire, and the CFO approves it", "one SQLite file for Tape, another file for the bank");
  await app.store.intake.createRuns(app.tenant, [{ id: run, workflow: "treasury", input: { day } }]);
  const open = await until(async () => (await app.gates.list({ run }))[0]);
  await app.signal(run, cfo, { approved: true }, { binds: open.binds });
  screen.line(`   ${open.name} approved ${JSON.stringify(open.payload)}`);

  screen.step("The bank wires the money");
  await receive(worker, "wired");
  screen.line(
    `   the journal says: bank.wire ${screen.dim((await app.effects.list({ run }))[0]?.status ?? "nothing")}`,
  );
  screen.line(`   the bank says:    ${wires(world)}`);

  screen.step(
    "The connection breaks before the response arrives",
    "the bank would pay again if it were called again, so Tape does not retry",
  );
  worker.send({ do: "lose", invoice });
  const unknown = await until(async () => {
    const records = await app.store.read.journal(app.tenant, { run });
    return records.find(({ kind, data }) => kind === "effect.settled" && "to" in data && data.to === "UNKNOWN");
  });
  screen.line(`   the journal says: bank.wire ${screen.bad("UNKNOWN")}, under token ${unknown.token}; the run waits`);

  screen.step("The reconciler observes", "the effect's observe function asks the bank for the invoice");
  const observed = await receive(worker, "observed");
  screen.line(
    `   ${worker.label} observed: ${observed.found ? screen.good("the wire exists") : screen.bad("no wire")}`,
  );
  await until(async () => (await app.runs.get(run))?.endedAt ?? undefined);
  return wireVerdict(screen, app, run, world);
}

async function receive<E extends FromWorker["event"]>(
  worker: Worker,
  event: E,
): Promise<FromWorker & { readonly event: E }> {
  for (;;) {
    const message = await worker.receive();
    if (message.event === event) return message as FromWorker & { readonly event: E };
  }
}

async function until<T>(read: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await read();
    if (found !== undefined) return found;
    await systemClock.sleep(20);
  }
}
