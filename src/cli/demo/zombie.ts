import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { openStore } from "../../host/open-store.ts";
import type { Store } from "../../store/contract/store.ts";
import type { Screen } from "../screen.ts";
import { DemoProcess } from "./demo-process.ts";
import { termLines } from "./term-lines.ts";
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
  /** The plain file that replaces the journal in the demo without a fence. */
  readonly unfenced: string | undefined;
  readonly start: (label: string) => Worker;
}

/**
 * Two processes, one file: the first is paused past its lease, the second takes over, the first resumes and writes. With
 * `unfenced` the leases are the same but the journal is a plain file, which shows what the fence is for.
 */
export async function zombieDemo(screen: Screen, options: { readonly unfenced?: boolean } = {}): Promise<number> {
  if (process.platform === "win32") {
    screen.line("This demo pauses a process with SIGSTOP, which Windows does not have. Run it on Linux or macOS.");
    return 2;
  }
  const folder = await mkdtemp(join(tmpdir(), "tape-zombie-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const store = await openStore(url);
  const world = join(folder, "world.jsonl");
  const unfenced = options.unfenced === true ? join(folder, "journal.jsonl") : undefined;
  const workers: Worker[] = [];
  const start = (label: string): Worker => {
    const args = [url, run, String(ttlMs), world, ...(unfenced === undefined ? [] : [unfenced])];
    const worker: Worker = new DemoProcess(label, new URL("zombie-worker.ts", import.meta.url), args);
    workers.push(worker);
    return worker;
  };
  try {
    return await runDemo(screen, { store, world: fileLedger(world), unfenced, start });
  } finally {
    for (const worker of workers) await worker.kill();
    await store.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function runDemo(screen: Screen, stage: Stage): Promise<number> {
  const { store, start, unfenced } = stage;
  screen.line(screen.bold(`Tape: the zombie${unfenced === undefined ? "" : ", without the fence"}`));
  screen.line("A paused worker is replaced, resumes, and still believes that it owns the payment.");
  if (unfenced !== undefined) {
    screen.line(
      "For comparison only: the leases are the same, but the journal is a plain file that compares no token.",
    );
  }

  await store.intake.createRuns(tenant, [{ id: run, workflow: "payment", input: { amount: 100 } }]);
  screen.step("Worker A acquires the run", `one SQLite file, two processes, a lease of ${ttlMs / 1000} s`);
  const a = start("worker-a");
  report(screen, a, await a.receive());
  report(screen, a, await a.request({ do: "step", pos: 0, name: "reserve the funds" }));

  screen.step(
    "Worker A is paused in the middle of its work (SIGSTOP)",
    "like a long GC pause, a frozen host or a debugger: it does not notice",
  );
  a.send({ do: "stop" });
  await waitForExpiry(screen, store);

  screen.step("Worker B sees the expired lease and takes over");
  const b = start("worker-b");
  report(screen, b, await b.receive());
  report(screen, b, await b.request({ do: "pay", pos: 1 }));

  screen.step("Worker A resumes (SIGCONT) and tries to continue");
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
  screen.line("   the lease has expired");
}

function report(screen: Screen, { label }: Worker, message: FromWorker): void {
  switch (message.event) {
    case "holding":
      screen.line(`   ${label} ${screen.good("holds")} the lease: token ${message.token}, reason ${message.reason}`);
      break;
    case "written":
      screen.line(`   ${label} ${screen.good("wrote")}: ${message.title}`);
      if (message.wired) screen.line(`   ${label} ${screen.good("wired")} the money`);
      break;
    case "rejected":
      screen.line(`   ${label} ${screen.bad("write rejected")} (${message.title}): ${message.message}`);
      break;
    case "belief":
      screen.line(`   ${label} believes that its lease is ${message.belief}`);
  }
}

async function verdict(screen: Screen, { store, world }: Stage, attempts: readonly FromWorker[]): Promise<number> {
  const records = await store.read.journal(tenant, { run });
  screen.step("The journal", "every record carries the token of its writer");
  for (const { seq, token, kind, data } of records) {
    const name = "name" in data ? ` ${String(data.name)}` : "";
    screen.line(`   ${String(seq).padStart(2)}  token ${token}  ${kind}${screen.dim(name)}`);
  }
  screen.step("The term history", "who owned the run, from when to when, and why");
  for (const line of termLines(await store.read.terms(tenant, { run }))) screen.line(`   ${line}`);

  const rejected = attempts.filter((attempt) => attempt.event === "rejected").length;
  const steps = records.filter((record) => record.kind === "step.done").length;
  const correct = rejected === attempts.length && steps === 2 && wires(world) === "1 wire";
  screen.line();
  screen.line(
    `${rejected} of ${attempts.length} writes of the zombie rejected; the transfer is booked ${steps - 1} time`,
  );
  screen.line(correct ? screen.good(`world: ${wires(world)}`) : screen.bad(`world: ${wires(world)}`));
  return correct ? 0 : 1;
}

async function unfencedVerdict(screen: Screen, { store, world }: Stage, journal: string): Promise<number> {
  screen.step("The plain file", "both workers wrote, and the tokens go down: nothing compared them");
  for (const { token, by, title } of plainJournal.lines(journal)) {
    screen.line(`   token ${token}  ${by}  ${screen.dim(title)}`);
  }
  screen.step("The term history", "the lease had a new holder, and it made no difference");
  for (const line of termLines(await store.read.terms(tenant, { run }))) screen.line(`   ${line}`);
  screen.line();
  screen.line("Paid twice. The same demo with the fence: durable-tape demo zombie");
  screen.line(screen.bad(`world: ${wires(world)}`));
  return wires(world) === "2 wires" ? 0 : 1; // which is what this demo shows
}
