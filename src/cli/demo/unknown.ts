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

/** The bank acts and its answer is lost. Nobody asks it again: somebody looks, and then everybody knows. */
export async function unknownDemo(screen: Screen): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "tape-unknown-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const path = join(folder, "world.jsonl");
  // The director only looks and signals; the worker drives.
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [] }), work: false });
  const program = new URL("../dev/worker.ts", import.meta.url);
  const worker: Worker = new DemoProcess("worker-a", program, [url, path, String(ttlMs)]);
  try {
    return await play(screen, app, fileLedger(path), worker);
  } finally {
    await worker.kill();
    await app.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function play(screen: Screen, app: Tape, world: Ledger, worker: Worker): Promise<number> {
  screen.line(screen.bold("Tape: the lost answer"));
  screen.line("A wire goes out and its answer does not come back. Did the money move? Nobody knows, and Tape says so.");

  screen.step("The treasury decides, and the CFO approves", "one SQLite file for Tape, another file for the bank");
  await app.store.intake.createRuns(app.tenant, [{ id: run, workflow: "treasury", input: { day } }]);
  const open = await until(async () => (await app.gates.list({ run }))[0]);
  await app.signal(run, cfo, { approved: true }, { binds: open.binds });
  screen.line(`   ${open.name} approved ${JSON.stringify(open.payload)}`);

  screen.step("The bank wires the money");
  await heard(worker, "wired");
  screen.line(
    `   the journal says: bank.wire ${screen.dim((await app.effects.list({ run }))[0]?.status ?? "nothing")}`,
  );
  screen.line(`   the bank says:    ${wires(world)}`);

  screen.step(
    "The connection breaks before the answer is here",
    "the bank pays again if it is asked again: nobody asks",
  );
  worker.send({ do: "lose", invoice });
  const doubt = await until(async () => {
    const records = await app.store.read.journal(app.tenant, { run });
    return records.find(({ kind, data }) => kind === "effect.settled" && "to" in data && data.to === "UNKNOWN");
  });
  screen.line(`   the journal says: bank.wire ${screen.bad("UNKNOWN")}, under token ${doubt.token}; the run waits`);

  screen.step("The reconciler looks", "the effect says how: it asks the bank for the invoice");
  const looked = await heard(worker, "looked");
  screen.line(
    `   ${worker.label} looked: ${looked.found ? screen.good("the wire is there") : screen.bad("nothing is there")}`,
  );
  await until(async () => (await app.runs.get(run))?.endedAt ?? undefined);
  return wireVerdict(screen, app, run, world);
}

async function heard<S extends FromWorker["say"]>(worker: Worker, say: S): Promise<FromWorker & { readonly say: S }> {
  for (;;) {
    const message = await worker.receive();
    if (message.say === say) return message as FromWorker & { readonly say: S };
  }
}

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    await systemClock.sleep(20);
  }
}
