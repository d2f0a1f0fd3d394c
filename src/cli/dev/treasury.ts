import type { Clock } from "../../base/clock.ts";
import type { Tape } from "../../host/tape.ts";
import type { LeaseView, TermView } from "../../model/lease.ts";
import type { RunStatus } from "../../model/machines.ts";
import { DemoProcess } from "../demo/demo-process.ts";
import { cfo } from "../demo/treasury/agent.ts";
import type { Ledger } from "../demo/treasury/ledger.ts";
import type { FromWorker, ToWorker } from "./messages.ts";
import type { BandRecord } from "./ownership-band.ts";

/** A fault to inject into a payment, between its wire and the record of it. */
export type Fault = "kill" | "zombie" | "lose";

/** The current state of one payment: the director's part, and what the store and the world contain. */
export interface Payment {
  readonly run: string;
  readonly invoice: string;
  /** The fault that is injected, or will be as soon as the bank has paid. */
  fault: Fault | undefined;
  /** The worker that called the bank; undefined before the call. */
  sender: string | undefined;
  /** The bank's response is on its way, or can no longer arrive. */
  responded: boolean;
  /** The zombie, while it is stopped. */
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
  /** The world's ledger, and its file. */
  readonly world: Ledger;
  readonly worldFile: string;
  readonly clock: Clock;
  readonly ttlMs: number;
  /** How long the bank takes to respond: the time in which a fault can be injected. */
  readonly responseMs: number;
  /** Prints what has just happened. */
  readonly print: (line: string) => void;
}

type Worker = DemoProcess<ToWorker, FromWorker>;

/** One works and one stands by; a worker that dies is replaced. */
const replicas = 2;
/** A worker that drains for longer is killed; its leases expire. */
const drainMs = 5_000;

/**
 * The director of the treasury demo: starts workers and payments, approves as the CFO would, and injects the faults that
 * the keys select. It drives no run. A payment goes STARTING → wired → responded or cut off → end of its run; a fault is
 * injected when the bank has paid and the worker does not know it yet.
 */
export class Treasury {
  readonly payments: Payment[] = [];
  readonly #options: TreasuryOptions;
  readonly #workers = new Map<string, Worker>();
  readonly #ready = new Set<string>();
  #workersStarted = 0;
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

  /** Starts the next payment, and later injects the fault. */
  async pay(fault?: Fault): Promise<void> {
    const run = `payment-${this.payments.length + 1}`;
    const payment: Payment = {
      ...{ run, invoice: `sweep-${run}`, fault, sender: undefined, responded: false, stopped: undefined },
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
    const { app, print } = this.#options;
    print(`${run} starts: plan, get the CFO's approval, wire, book`);
    await app.store.intake.createRuns(app.tenant, [{ id: run, workflow: "treasury", input: { day: run } }]);
  }

  /** Injects a fault into the payment under way if the bank has not responded yet, otherwise into a new one. */
  async inject(fault: Fault): Promise<void> {
    const payment = this.latest;
    const open = payment !== undefined && payment.endedAt === undefined && !payment.responded;
    if (!open) return this.pay(fault);
    if (payment.fault !== undefined) return;
    payment.fault = fault;
    if (payment.sender === undefined) this.#options.print(`${payment.run}: ${announcements[fault]}`);
    else this.#injectNow(payment);
  }

  /** Reads all open payments from the store and the world, approves open gates, wakes zombies. */
  async refresh(): Promise<void> {
    for (const payment of this.payments.filter(isOpen)) await this.#refresh(payment);
  }

  /** Every payment has ended, and no zombie is still stopped. */
  get done(): boolean {
    return !this.payments.some(isOpen);
  }

  /** Delivers the bank's responses, then drains every worker; none is left behind. */
  async quit(): Promise<void> {
    this.#quitting = true;
    const workers = [...this.#workers.values()];
    for (const { invoice, sender, stopped } of this.payments.filter(isOpen)) {
      if (stopped !== undefined) this.#workers.get(stopped)?.process.kill("SIGCONT");
      if (sender !== undefined) this.#send(sender, { do: "respond", invoice });
    }
    const late = this.#options.clock.after(drainMs, () => this.kill());
    // A worker that is still starting holds nothing.
    await Promise.all(
      workers.map((worker) => (this.#ready.has(worker.label) ? worker.quit({ do: "quit" }) : worker.kill())),
    );
    late();
  }

  /** Ends all workers immediately. */
  kill(): void {
    this.#quitting = true;
    for (const { process } of this.#workers.values()) process.kill("SIGKILL");
  }

  #startWorker(): void {
    const { url, worldFile, ttlMs } = this.#options;
    const k = this.#workersStarted++;
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
      let message: FromWorker;
      try {
        message = await worker.receive();
      } catch {
        return; // it has exited: the exit listener replaces it
      }
      this.#onMessage(worker.label, message);
    }
  }

  #onMessage(label: string, message: FromWorker): void {
    const { print, clock, responseMs } = this.#options;
    if (message.event === "ready") {
      this.#ready.add(label);
      return;
    }
    const payment = this.payments.find(({ invoice }) => invoice === message.invoice);
    if (payment === undefined) return;
    switch (message.event) {
      case "wired":
        payment.sender = label;
        print(`${label}: the bank has wired the money (${message.id}); its response is on its way`);
        if (payment.responded) this.#send(label, { do: "respond", invoice: payment.invoice });
        else if (payment.fault !== undefined) this.#injectNow(payment);
        else clock.after(responseMs, () => this.#respond(payment, label));
        break;
      case "observed":
        print(
          `${label}: did not wire again; observed ${message.found ? "the wire at the bank" : "no wire at the bank"}`,
        );
        break;
      case "written":
        print(`${label}: WROTE under its old token`);
        break;
      case "rejected":
        print(`${label}: write rejected: ${message.message}`);
    }
  }

  #respond(payment: Payment, label: string): void {
    if (payment.fault !== undefined || this.#quitting) return;
    payment.responded = true;
    this.#send(label, { do: "respond", invoice: payment.invoice });
  }

  #injectNow(payment: Payment): void {
    const { invoice, sender, fault } = payment;
    const { print } = this.#options;
    if (sender === undefined || fault === undefined) return;
    payment.responded = true;
    if (fault === "kill") {
      this.#workers.get(sender)?.process.kill("SIGKILL");
      print(`${sender}: killed (SIGKILL); the money has moved, and no record says so`);
    } else if (fault === "zombie") {
      payment.stopped = sender;
      this.#send(sender, { do: "stop" });
      print(`${sender}: paused (SIGSTOP) until its lease has expired`);
    } else {
      this.#send(sender, { do: "lose", invoice });
      print(`${sender}: the response is lost; UNKNOWN until the reconciler has observed the wire`);
    }
  }

  #send(label: string, message: ToWorker): void {
    const worker = this.#workers.get(label);
    if (worker?.process.connected) worker.send(message);
  }

  async #refresh(payment: Payment): Promise<void> {
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
    const ofItem = item === undefined ? [] : await read.journal(app.tenant, { journal: item });
    Object.assign(payment, { status: view.status, terms, lease, wire: wire?.status });
    payment.records = [...main, ...ofItem].toSorted((a, b) => a.at - b.at);
    payment.wires = world.entries().filter(({ kind, subject }) => kind === "wire" && subject === invoice).length;
    payment.endedAt = view.endedAt ?? undefined;
    this.#wake(payment);
  }

  /** The zombie stays paused until another worker has taken its run over; then it gets the response, and writes. */
  #wake(payment: Payment): void {
    const { stopped, invoice, terms } = payment;
    const owner = terms.at(-1)?.label;
    if (stopped === undefined || owner === undefined || owner === stopped) return;
    payment.stopped = undefined;
    this.#options.print(`${stopped}: resumes (SIGCONT), and still believes that it owns the payment`);
    this.#workers.get(stopped)?.process.kill("SIGCONT");
    this.#send(stopped, { do: "write", invoice });
    this.#send(stopped, { do: "respond", invoice });
  }
}

const isOpen = ({ endedAt, stopped }: Payment): boolean => endedAt === undefined || stopped !== undefined;

const announcements: Readonly<Record<Fault, string>> = {
  kill: "its worker will be killed as soon as the bank has paid",
  zombie: "its worker will be paused as soon as the bank has paid",
  lose: "the bank's response will be lost",
};
