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

/** Short for the one whose lease the audience waits for; long for the others, whom a slow machine must not cost theirs. */
const ttlMs = { first: 1_500, next: 15_000 } as const;
const restMs = 1_500;
const run = "trip-7";
const right = "book flight, book hotel, cancel hotel, cancel flight";
type Worker = DemoProcess<never, FromTripWorker>;

/** A trip whose every worker dies or fails: the five reactors of whoever is left bring it to its right end. */
export async function reactorsDemo(screen: Screen): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "tape-reactors-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const path = join(folder, "world.jsonl");
  // The director only looks; the workers drive.
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [] }), work: false });
  const workers: Worker[] = [];
  try {
    return await play(screen, app, fileLedger(path), (label, part) => {
      const args = [url, path, run, String(ttlMs[part]), String(restMs), part];
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

async function play(
  screen: Screen,
  app: Tape,
  world: Ledger,
  start: (label: string, part: "first" | "next") => Worker,
): Promise<number> {
  screen.line(screen.bold("Tape: the five reactors"));
  screen.line(
    "An agent books a flight, rests, books a hotel, and its card is refused. Two of its three workers are killed.",
  );

  screen.step("Worker A starts the run", "its outbox reactor asks the airline while the run waits without a lease");
  const a = start("worker-a", "first");
  await report(screen, a, "book flight");

  screen.step("Worker A is killed (SIGKILL)", "before it could record what the airline had answered");
  await a.kill();
  const [flight] = await app.effects.list({ run });
  screen.line(`   the journal says: ${flight?.name} ${screen.bad(flight?.status ?? "nothing")}`);
  screen.line(`   the world says:   ${said(world)}`);
  await untilFree(screen, app, flight?.item ?? 0);

  screen.step("Worker B: the reconciler looks instead of asking again", "then recovery wakes the run, and it rests");
  const b = start("worker-b", "next");
  await report(screen, b, "look for book flight: found");
  const dueAt = await timerOf(app);
  const [known] = await app.effects.list({ run });
  screen.line(`   the journal says: ${known?.name} ${screen.good(known?.status ?? "nothing")}`);

  screen.step("Worker B is killed too, while the run rests", "nobody is there when its timer falls due");
  await b.kill();
  await untilDue(screen, app, dueAt);

  screen.step(
    "Worker C: timers wake the run, and the card is refused",
    "compensation undoes what was done, newest first",
  );
  const c = start("worker-c", "next");
  for (const act of ["book hotel", "cancel hotel", "cancel flight"]) await report(screen, c, act);
  return verdict(screen, app, world);
}

async function report(screen: Screen, worker: Worker, expected: string): Promise<void> {
  const { act } = await worker.receive();
  screen.line(`   ${worker.label} ${act === expected ? screen.good(act) : screen.bad(`${act} (not ${expected})`)}`);
}

async function untilFree(screen: Screen, app: Tape, journal: number): Promise<void> {
  for (;;) {
    const lease = await app.store.read.lease(app.tenant, { journal });
    if (lease === undefined || lease.state !== "HELD") break;
    screen.bar("lease of worker A", lease.remainingMs, ttlMs.first);
    await systemClock.sleep(Math.min(100, lease.remainingMs));
  }
  screen.barDone();
  screen.line("   its lease has run out");
}

async function timerOf(app: Tape): Promise<number> {
  for (;;) {
    const [timer] = await app.timers.list({ run });
    // It rests: whoever put it to rest holds nothing any more.
    if (timer !== undefined && (await app.runs.get(run))?.lease.state !== "HELD") return timer.dueAt;
    await systemClock.sleep(20);
  }
}

async function untilDue(screen: Screen, app: Tape, dueAt: number): Promise<void> {
  for (;;) {
    const leftMs = dueAt - (await app.store.read.now());
    if (leftMs <= 0) break;
    screen.bar("timer", leftMs, restMs);
    await systemClock.sleep(Math.min(100, leftMs));
  }
  screen.barDone();
  screen.line("   the timer is due");
}

const said = (world: Ledger): string =>
  world
    .entries()
    .map(({ act }) => act)
    .join(", ");

async function verdict(screen: Screen, app: Tape, world: Ledger): Promise<number> {
  let view = await app.runs.get(run);
  for (; view?.endedAt === null; view = await app.runs.get(run)) await systemClock.sleep(20);
  screen.step("Which reactor did what, in which process", "as the journals tell it, in order");
  const deeds = await reactorEvents(app, run);
  const width = Math.max(...deeds.map(({ reactor }) => reactor.length));
  for (const { reactor, label, event: deed } of deeds) {
    screen.line(`   ${reactor.padEnd(width)}  ${label.padEnd(8)}  ${deed}`);
  }
  const all = ["outbox", "reconciler", "recovery", "timers", "compensation"];
  const atWork = all.filter((name) => deeds.some(({ reactor }) => reactor === name));
  const fine = view?.status === "COMPENSATED" && said(world) === right && atWork.length === all.length;
  screen.line();
  screen.line(`run: ${view?.status ?? "gone"}`);
  screen.line(`reactors at work: ${atWork.length} of ${all.length}`);
  screen.line(fine ? screen.good(`world: ${said(world)}`) : screen.bad(`world: ${said(world)}`));
  return fine ? 0 : 1;
}
