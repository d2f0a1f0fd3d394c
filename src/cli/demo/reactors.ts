import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { Tape } from "../../host/tape.ts";
import { createRunner } from "../../sdk/workflow.ts";
import type { Screen } from "../screen.ts";
import { DemoProcess } from "./demo-process.ts";
import { reactorEvents } from "./reactor-events.ts";
import type { FromTripWorker } from "./reactors-worker.ts";
import { fileLedger, type Ledger } from "./treasury/ledger.ts";

/** Short for the first worker, because the demo waits for its lease to expire; long for the others on slow machines. */
const ttlMs = { first: 1_500, next: 15_000 } as const;
const sleepMs = 1_500;
const run = "trip-7";
const expected = "book flight, book hotel, cancel hotel, cancel flight";
type Worker = DemoProcess<never, FromTripWorker>;

/** The workers of a trip keep dying: the reactors of the remaining process finish it correctly. */
export async function reactorsDemo(screen: Screen): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "tape-reactors-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const path = join(folder, "world.jsonl");
  // The director only reads; the workers drive.
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [] }), work: false });
  const workers: Worker[] = [];
  try {
    return await runDemo(screen, app, fileLedger(path), (label, part) => {
      const args = [url, path, run, String(ttlMs[part]), String(sleepMs), part];
      const worker: Worker = new DemoProcess(label, new URL("reactors-worker.ts", import.meta.url), args);
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
  start: (label: string, part: "first" | "next") => Worker,
): Promise<number> {
  screen.line(screen.bold("Tape: the five reactors"));
  screen.line(
    "An agent books a flight, sleeps, books a hotel, and its card is declined. Two of its three workers are killed.",
  );

  screen.step("Worker A starts the run", "its outbox reactor calls the airline while the run waits without a lease");
  const a = start("worker-a", "first");
  await report(screen, a, "book flight");

  screen.step("Worker A is killed (SIGKILL)", "before it could record the airline's response");
  await a.kill();
  const [flight] = await app.effects.list({ run });
  screen.line(`   the journal says: ${flight?.name} ${screen.bad(flight?.status ?? "nothing")}`);
  screen.line(`   the world says:   ${eventsOf(world)}`);
  await untilFree(screen, app, flight?.item ?? 0);

  screen.step("Worker B: the reconciler observes instead of retrying", "then recovery resumes the run, and it sleeps");
  const b = start("worker-b", "next");
  await report(screen, b, "observe book flight (found)");
  const dueAt = await timerOf(app);
  const [observed] = await app.effects.list({ run });
  screen.line(`   the journal says: ${observed?.name} ${screen.good(observed?.status ?? "nothing")}`);

  screen.step("Worker B is killed too, while the run sleeps", "no process is left when its timer is due");
  await b.kill();
  await untilDue(screen, app, dueAt);

  screen.step(
    "Worker C: the timer fires, and the card is declined",
    "compensation reverses the bookings, newest first",
  );
  const c = start("worker-c", "next");
  for (const event of ["book hotel", "cancel hotel", "cancel flight"]) await report(screen, c, event);
  return verdict(screen, app, world);
}

async function report(screen: Screen, worker: Worker, due: string): Promise<void> {
  const { event } = await worker.receive();
  screen.line(`   ${worker.label}: ${event === due ? screen.good(event) : screen.bad(`${event} (not ${due})`)}`);
}

async function untilFree(screen: Screen, app: Tape, journal: number): Promise<void> {
  for (;;) {
    const lease = await app.store.read.lease(app.tenant, { journal });
    if (lease === undefined || lease.state !== "HELD") break;
    screen.bar("lease of worker A", lease.remainingMs, ttlMs.first);
    await systemClock.sleep(Math.min(100, lease.remainingMs));
  }
  screen.barDone();
  screen.line("   the lease has expired");
}

async function timerOf(app: Tape): Promise<number> {
  for (;;) {
    const [timer] = await app.timers.list({ run });
    // The run is parked: no process holds its lease.
    if (timer !== undefined && (await app.runs.get(run))?.lease.state !== "HELD") return timer.dueAt;
    await systemClock.sleep(20);
  }
}

async function untilDue(screen: Screen, app: Tape, dueAt: number): Promise<void> {
  for (;;) {
    const leftMs = dueAt - (await app.store.read.now());
    if (leftMs <= 0) break;
    screen.bar("timer", leftMs, sleepMs);
    await systemClock.sleep(Math.min(100, leftMs));
  }
  screen.barDone();
  screen.line("   the timer is due");
}

const eventsOf = (world: Ledger): string =>
  world
    .entries()
    .map(({ kind }) => kind)
    .join(", ");

async function verdict(screen: Screen, app: Tape, world: Ledger): Promise<number> {
  let view = await app.runs.get(run);
  for (; view?.endedAt === null; view = await app.runs.get(run)) await systemClock.sleep(20);
  screen.step("What each reactor did, and in which process", "from the journals, in order");
  const events = await reactorEvents(app, run);
  const width = Math.max(...events.map(({ reactor }) => reactor.length));
  for (const { reactor, label, event } of events) {
    screen.line(`   ${reactor.padEnd(width)}  ${label.padEnd(8)}  ${event}`);
  }
  const all = ["outbox", "reconciler", "recovery", "timers", "compensation"];
  const active = all.filter((name) => events.some(({ reactor }) => reactor === name));
  const correct = view?.status === "COMPENSATED" && eventsOf(world) === expected && active.length === all.length;
  screen.line();
  screen.line(`run: ${view?.status ?? "gone"}`);
  screen.line(`reactors involved: ${active.length} of ${all.length}`);
  screen.line(correct ? screen.good(`world: ${eventsOf(world)}`) : screen.bad(`world: ${eventsOf(world)}`));
  return correct ? 0 : 1;
}
