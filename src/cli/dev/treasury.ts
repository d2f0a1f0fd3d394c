import type { Clock } from "../../base/clock.ts";
import type { Tape } from "../../host/tape.ts";
import type { LeaseView, TermView } from "../../model/lease.ts";
import type { RunStatus } from "../../model/machines.ts";
import { DemoProcess } from "../demo/demo-process.ts";
import { cfo } from "../demo/treasury/agent.ts";
import type { Ledger } from "../demo/treasury/ledger.ts";
import type { FromWorker, ToWorker } from "./messages.ts";
import type { BandRecord } from "./ownership-band.ts";

/** What may be done to a payment between its wire and the record of it. */
export type Fault = "kill" | "zombie" | "lose";

/** One payment as it stands: the director's part of it, and what the store and the world say. */
export interface Payment {
  readonly run: string;
  readonly invoice: string;
  /** The deed that is done to it, or will be as soon as the bank has acted. */
  fault: Fault | undefined;
  /** Who called the bank; undefined before. */
  sender: string | undefined;
  /** The bank's answer is on its way, or can no longer arrive. */
  answered: boolean;
  /** The zombie, from its stop until it has woken. */
  stopped: string | undefined;
  status: RunStatus | "STARTING";
  wire: string | undefined;
  terms: readonly TermView[];
  records: readonly BandRecord[];
  lease: LeaseView | undefined;
  endedAt: number | undefined;
  wires: number;
}

export interface TreasuryOptions {
  readonly app: Tape;
  readonly url: string;
  /** The world's ledger, and the file it is in. */
  readonly world: Ledger;
  readonly worldFile: string;
  readonly clock: Clock;
  readonly ttlMs: number;
  /** How long the bank takes to answer: the time for a deed. */
  readonly answerMs: number;
  /** What has just happened, for people. */
  readonly tell: (line: string) => void;
}

type Worker = DemoProcess<ToWorker, FromWorker>;

/** One to work and one to stand by: whoever dies is replaced. */
const replicas = 2;
/** A worker that takes longer to come to rest is killed: its leases run out by themselves. */
const drainMs = 5_000;

/**
 * The director of the treasury: starts workers and payments, approves as the CFO would, and does to them what the keys
 * say. It drives nothing itself. A payment goes STARTING → (wired) → answered or cut off → its run's end; a deed is done
 * at the moment when the bank has acted and the worker does not know it yet.
 */
export class Treasury {
  readonly payments: Payment[] = [];
  readonly #options: TreasuryOptions;
  readonly #workers = new Map<string, Worker>();
  readonly #ready = new Set<string>();
  #named = 0;
  #quitting = false;

  constructor(options: TreasuryOptions) {
    this.#options = options;
    for (let k = 0; k < replicas; k++) this.#startWorker();
  }

  get workers(): readonly string[] {
    return [...this.#workers.keys()];
  }

  get latest(): Payment | undefined {
    return this.payments.at(-1);
  }

  /** Starts the next payment, and later does that to it. */
  async pay(deed?: Fault): Promise<void> {
    const run = `payment-${this.payments.length + 1}`;
    const payment: Payment = {
      ...{ run, invoice: `sweep-${run}`, fault: deed, sender: undefined, answered: false, stopped: undefined },
      ...{
        status: "STARTING",
        wire: undefined,
        terms: [],
        records: [],
        lease: undefined,
        endedAt: undefined,
        wires: 0,
      },
    };
    this.payments.push(payment);
    const { app, tell } = this.#options;
    tell(`${run} starts: decide, ask the CFO, wire, book`);
    await app.store.intake.createRuns(app.tenant, [{ id: run, workflow: "treasury", input: { day: run } }]);
  }

  /** To the payment that is under way, if its wire is not answered yet; else to a new one. */
  async press(deed: Fault): Promise<void> {
    const payment = this.latest;
    const open = payment !== undefined && payment.endedAt === undefined && !payment.answered;
    if (!open) return this.pay(deed);
    if (payment.fault !== undefined) return;
    payment.fault = deed;
    if (payment.sender === undefined) this.#options.tell(`${payment.run}: ${announcements[deed]}`);
    else this.#do(payment);
  }

  /** Asks the store and the world how everything is, approves what waits for approval, wakes zombies. */
  async look(): Promise<void> {
    for (const payment of this.payments.filter(isOpen)) await this.#look(payment);
  }

  /** true: every payment has ended, and no zombie still sleeps. */
  get done(): boolean {
    return !this.payments.some(isOpen);
  }

  /** Lets the bank answer, then each worker drains and gives back what it holds; none is left behind. */
  async quit(): Promise<void> {
    this.#quitting = true;
    const workers = [...this.#workers.values()];
    for (const { invoice, sender, stopped } of this.payments.filter(isOpen)) {
      if (stopped !== undefined) this.#workers.get(stopped)?.process.kill("SIGCONT");
      if (sender !== undefined) this.#report(sender, { do: "answer", invoice });
    }
    const late = this.#options.clock.after(drainMs, () => this.kill());
    // Who is still starting holds nothing.
    await Promise.all(workers.map((one) => (this.#ready.has(one.label) ? one.quit({ do: "quit" }) : one.kill())));
    late();
  }

  /** At once, for whoever cannot wait. */
  kill(): void {
    this.#quitting = true;
    for (const { process } of this.#workers.values()) process.kill("SIGKILL");
  }

  #startWorker(): void {
    const { url, worldFile, ttlMs } = this.#options;
    const k = this.#named++;
    const label = `worker-${k < 26 ? String.fromCharCode(97 + k) : k + 1}`;
    const program = new URL("worker.ts", import.meta.url);
    const worker: Worker = new DemoProcess(label, program, [url, worldFile, String(ttlMs)]);
    this.#workers.set(label, worker);
    worker.process.once("exit", () => {
      this.#workers.delete(label);
      if (!this.#quitting) this.#startWorker();
    });
    void this.#listen(worker);
  }

  async #listen(worker: Worker): Promise<void> {
    for (;;) {
      let heard: FromWorker;
      try {
        heard = await worker.receive();
      } catch {
        return; // it has gone: its exit is seen to elsewhere
      }
      this.#heard(worker.label, heard);
    }
  }

  #heard(label: string, heard: FromWorker): void {
    const { tell, clock, answerMs } = this.#options;
    if (heard.say === "ready") {
      this.#ready.add(label);
      return;
    }
    const payment = this.payments.find(({ invoice }) => invoice === heard.invoice);
    if (payment === undefined) return;
    switch (heard.say) {
      case "wired":
        payment.sender = label;
        tell(`${label}: the bank has wired the money (${heard.id}); its answer is on its way`);
        if (payment.answered) this.#report(label, { do: "answer", invoice: payment.invoice });
        else if (payment.fault !== undefined) this.#do(payment);
        else clock.after(answerMs, () => this.#answer(payment, label));
        break;
      case "looked":
        tell(`${label}: did not wire again; it looked, and ${heard.found ? "found the wire" : "found nothing"}`);
        break;
      case "written":
        tell(`${label}: WROTE under its old token`);
        break;
      case "refused":
        tell(`${label}: its write is refused: ${heard.message}`);
    }
  }

  #answer(payment: Payment, label: string): void {
    if (payment.fault !== undefined || this.#quitting) return;
    payment.answered = true;
    this.#report(label, { do: "answer", invoice: payment.invoice });
  }

  #do(payment: Payment): void {
    const { invoice, sender, fault: deed } = payment;
    const { tell } = this.#options;
    if (sender === undefined || deed === undefined) return;
    payment.answered = true;
    if (deed === "kill") {
      this.#workers.get(sender)?.process.kill("SIGKILL");
      tell(`${sender}: killed (SIGKILL); the money has moved, and nothing has recorded it`);
    } else if (deed === "zombie") {
      payment.stopped = sender;
      this.#report(sender, { do: "stop" });
      tell(`${sender}: stopped (SIGSTOP); its lease runs out while it sleeps`);
    } else {
      this.#report(sender, { do: "lose", invoice });
      tell(`${sender}: the answer is lost; UNKNOWN, until somebody has looked`);
    }
  }

  #report(label: string, message: ToWorker): void {
    const worker = this.#workers.get(label);
    if (worker?.process.connected) worker.send(message);
  }

  async #look(payment: Payment): Promise<void> {
    const { app, world } = this.#options;
    const { run, invoice } = payment;
    const { read } = app.store;
    for (const { name, binds } of await app.gates.list({ run })) {
      if (name !== cfo.name) continue;
      await app.signal(run, cfo, { approved: true }, { key: "cfo", binds });
    }
    const [view, terms, lease, [wire]] = await Promise.all([
      app.runs.get(run),
      read.terms(app.tenant, { run }),
      read.lease(app.tenant, { run }),
      app.effects.list({ run }),
    ]);
    if (view === undefined) return; // its start is not committed yet
    const main = await read.journal(app.tenant, { run });
    const item = wire?.item ?? undefined;
    const about = item === undefined ? [] : await read.journal(app.tenant, { journal: item });
    Object.assign(payment, { status: view.status, terms, lease, wire: wire?.status });
    payment.records = [...main, ...about].toSorted((a, b) => a.at - b.at);
    payment.wires = world.entries().filter(({ act, about: what }) => act === "wire" && what === invoice).length;
    payment.endedAt = view.endedAt ?? undefined;
    this.#wake(payment);
  }

  /** The zombie sleeps until another has taken its run over; then it gets its answer, and writes. */
  #wake(payment: Payment): void {
    const { stopped, invoice, terms } = payment;
    const owner = terms.at(-1)?.label;
    if (stopped === undefined || owner === undefined || owner === stopped) return;
    payment.stopped = undefined;
    this.#options.tell(`${stopped}: wakes (SIGCONT), and still believes that the payment is its own`);
    this.#workers.get(stopped)?.process.kill("SIGCONT");
    this.#report(stopped, { do: "write", invoice });
    this.#report(stopped, { do: "answer", invoice });
  }
}

const isOpen = ({ endedAt, stopped }: Payment): boolean => endedAt === undefined || stopped !== undefined;

const announcements: Readonly<Record<Fault, string>> = {
  kill: "its worker will be killed as soon as the bank has acted",
  zombie: "its worker will be stopped as soon as the bank has acted",
  lose: "the bank's answer will be lost",
};
