import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { openStore } from "../../host/open-store.ts";
import type { Store } from "../../store/contract/store.ts";
import type { Screen } from "../screen.ts";
import { DemoProcess } from "./demo-process.ts";
import { ledgerLines } from "./ledger.ts";
import { fileLedger, type Ledger } from "./treasury/ledger.ts";
import { wires } from "./wire-verdict.ts";
import { plainJournal } from "./zombie-journal.ts";
import type { FromDirector, FromWorker } from "./zombie-messages.ts";

const ttlMs = 1_500;
const tenant = "default";
const run = "payment-2026-11-15";
type Worker = DemoProcess<FromDirector, FromWorker>;

interface Stage {
  readonly store: Store;
  readonly world: Ledger;
  /** The file that stands for the journal where there is to be no fence. */
  readonly unfenced: string | undefined;
  readonly start: (label: string) => Worker;
}

/**
 * Two processes, one file: the first is stopped past its lease, the second takes over, the first wakes and writes. With
 * `unfenced` the leases are the same and the journal is a plain file: it shows what the fence is for.
 */
export async function zombieDemo(screen: Screen, options: { readonly unfenced?: boolean } = {}): Promise<number> {
  if (process.platform === "win32") {
    screen.line("This demo stops a process with SIGSTOP, which Windows does not have. Run it on Linux or macOS.");
    return 2;
  }
  const folder = await mkdtemp(join(tmpdir(), "tape-zombie-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const store = await openStore(url);
  const world = join(folder, "world.jsonl");
  const unfenced = options.unfenced === true ? join(folder, "journal.jsonl") : undefined;
  const actors: Worker[] = [];
  const start = (label: string): Worker => {
    const args = [url, run, String(ttlMs), world, ...(unfenced === undefined ? [] : [unfenced])];
    const actor: Worker = new DemoProcess(label, new URL("zombie-worker.ts", import.meta.url), args);
    actors.push(actor);
    return actor;
  };
  try {
    return await play(screen, { store, world: fileLedger(world), unfenced, start });
  } finally {
    for (const actor of actors) await actor.kill();
    await store.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function play(screen: Screen, stage: Stage): Promise<number> {
  const { store, start, unfenced } = stage;
  screen.line(screen.bold(`Tape: the zombie${unfenced === undefined ? "" : ", without the fence"}`));
  screen.line("A paused worker is replaced, wakes up, and still believes that it owns the payment.");
  if (unfenced !== undefined) {
    screen.line("For comparison only: leases as always, but the journal is a plain file that compares no token.");
  }

  await store.intake.createRuns(tenant, [{ id: run, workflow: "payment", input: { amount: 100 } }]);
  screen.step("Worker A takes the run", `one SQLite file, two processes, a lease of ${ttlMs / 1000} s`);
  const a = start("worker-a");
  report(screen, a, await a.receive());
  report(screen, a, await a.request({ do: "step", pos: 0, name: "reserve the funds" }));

  screen.step(
    "Worker A is stopped in the middle of its work (SIGSTOP)",
    "a long pause, a frozen host, a debugger: it does not know",
  );
  a.send({ do: "stop" });
  await waitForExpiry(screen, store);

  screen.step("Worker B sees the expired lease and takes over");
  const b = start("worker-b");
  report(screen, b, await b.receive());
  report(screen, b, await b.request({ do: "pay", pos: 1 }));

  screen.step("Worker A wakes up (SIGCONT) and writes what it had in mind");
  a.process.kill("SIGCONT");
  const attempts = [await a.request({ do: "pay", pos: 1 })];
  if (unfenced === undefined) attempts.push(await a.request({ do: "renew" }));
  attempts.push(await a.request({ do: "end" }));
  for (const attempt of attempts) report(screen, a, attempt);

  screen.step("Worker B finishes the run");
  report(screen, b, await b.request({ do: "end" }));
  await Promise.all([a.quit({ do: "quit" }), b.quit({ do: "quit" })]);
  return unfenced === undefined ? verdict(screen, stage, attempts) : unfencedVerdict(screen, stage, unfenced);
}

async function waitForExpiry(screen: Screen, store: Store): Promise<void> {
  for (;;) {
    const lease = await store.read.lease(tenant, { run });
    if (lease === undefined || lease.state !== "HELD") break;
    screen.bar("lease of worker A", lease.remainingMs, ttlMs);
    await systemClock.sleep(Math.min(100, lease.remainingMs));
  }
  screen.bar("lease of worker A", 0, ttlMs);
  screen.barDone();
  screen.line("   the lease has run out");
}

function report(screen: Screen, actor: Worker, message: FromWorker): void {
  const who = actor.label;
  switch (message.say) {
    case "holding":
      screen.line(`   ${who} ${screen.good("holds")} the lease: token ${message.token}, because of ${message.reason}`);
      break;
    case "written":
      screen.line(`   ${who} ${screen.good("wrote")} ${message.title}`);
      if (message.wired) screen.line(`   ${who} ${screen.good("wired")} the money`);
      break;
    case "refused":
      screen.line(`   ${who} ${screen.bad("refused")} ${message.title}: ${message.message}`);
      break;
    case "belief":
      screen.line(`   ${who} believes its lease is ${message.belief}`);
  }
}

async function verdict(screen: Screen, { store, world }: Stage, attempts: readonly FromWorker[]): Promise<number> {
  const records = await store.read.journal(tenant, { run });
  screen.step("The journal", "every record carries the token it was written under");
  for (const { seq, token, kind, data } of records) {
    const name = "name" in data ? ` ${String(data.name)}` : "";
    screen.line(`   ${String(seq).padStart(2)}  token ${token}  ${kind}${screen.dim(name)}`);
  }
  screen.step("The ledger of terms", "who owned the run, from when to when, and why");
  for (const line of ledgerLines(await store.read.terms(tenant, { run }))) screen.line(`   ${line}`);

  const refused = attempts.filter((attempt) => attempt.say === "refused").length;
  const steps = records.filter((record) => record.kind === "step.done").length;
  const fine = refused === attempts.length && steps === 2 && wires(world) === "1 wire";
  screen.line();
  screen.line(
    `${refused} of ${attempts.length} writes of the zombie refused; the transfer is booked ${steps - 1} time`,
  );
  screen.line(fine ? screen.good(`world: ${wires(world)}`) : screen.bad(`world: ${wires(world)}`));
  return fine ? 0 : 1;
}

async function unfencedVerdict(screen: Screen, { store, world }: Stage, journal: string): Promise<number> {
  screen.step("The plain file", "both wrote, and the tokens fall: nobody compared them");
  for (const { token, by, title } of plainJournal.lines(journal)) {
    screen.line(`   token ${token}  ${by}  ${screen.dim(title)}`);
  }
  screen.step("The ledger of terms", "the lease had passed on, and it made no difference");
  for (const line of ledgerLines(await store.read.terms(tenant, { run }))) screen.line(`   ${line}`);
  screen.line();
  screen.line("Paid twice. The same story with the fence: durable-tape demo zombie");
  screen.line(screen.bad(`world: ${wires(world)}`));
  return wires(world) === "2 wires" ? 0 : 1; // this is what it set out to show
}
