import { seededRandom } from "../src/base/random.ts";
import type { Tape } from "../src/host/tape.ts";
import { isTapeError } from "../src/model/errors.ts";
import { gate } from "../src/sdk/gate.ts";
import type { Rewind } from "./plan-faults.ts";
import type { PlannedRun, PlannedSignal } from "./plan-runs.ts";
import type { PlannedUnbegun } from "./plan-visitors.ts";
import type { programs } from "./program.ts";
import { type Stage, tenant } from "./stage.ts";

/** Something that a client was told is done. */
export interface AcknowledgedCall {
  readonly what: "run" | "signal" | "cancel";
  readonly run: string;
  /** Of a signal. */
  readonly key?: string;
  /** Wall time at which it was asked for, and at which the answer came. */
  readonly asked: number;
  readonly at: number;
}

/** A signal without a key: its sender sends it once. */
export interface KeylessSignal {
  readonly run: string;
  readonly text: string;
  acknowledged: boolean;
  /** Wall time at which it was sent, and at which the sender knew, or gave up. */
  readonly asked: number;
  answered: number;
}

/** What somebody is told in a world where replicas die and the store is away: to be tried again. */
const transient: ReadonlySet<string> = new Set([
  "TAPE_STORE_UNREACHABLE",
  "TAPE_STORE_BUSY",
  "TAPE_STORE_CLOSED",
  "TAPE_OUTCOME_UNKNOWN",
  "TAPE_OVERLOADED",
]);

/** A replica that does not answer by then is dead or stopped: another may be asked. */
const answerMs = 3_000;

/** After the last fault: whoever is put off for longer is put off for ever. */
const patienceMs = 1_200_000;

export type ClientReport<T> = { readonly value: T } | { readonly error: unknown } | undefined;

/** People and programs outside: they ask whoever is up, and insist. */
export class Clients {
  readonly acknowledged: AcknowledgedCall[] = [];
  readonly faults: string[] = [];
  /** Codes of refusals that were in order. */
  readonly met = new Set<string>();
  /** What keyless signals said: each was sent once. */
  readonly said: KeylessSignal[] = [];
  readonly #stage: Stage;
  readonly #tapes: () => readonly Tape[];
  readonly #workflows: ReturnType<typeof programs>;
  readonly #random;

  constructor(stage: Stage, workflows: ReturnType<typeof programs>, tapes: () => readonly Tape[]) {
    this.#stage = stage;
    this.#workflows = workflows;
    this.#tapes = tapes;
    this.#random = seededRandom(`clients ${stage.plan.seed}`);
  }

  /** Asks one of those that are up. undefined: nobody is, or nobody has answered in time. */
  async ask<T>(work: (tape: Tape) => Promise<T>): Promise<ClientReport<T>> {
    const up = this.#tapes();
    const tape = up[this.#random.int(Math.max(1, up.length))];
    if (tape === undefined) return undefined;
    const asked = work(tape).then(
      (value): ClientReport<T> => ({ value }),
      (error: unknown): ClientReport<T> => ({ error }),
    );
    return Promise.race([asked, this.#stage.time.sleep(answerMs).then(() => undefined)]);
  }

  /** Until somebody says yes, or something that no repetition changes: then its code. */
  async insist<T>(work: (tape: Tape) => Promise<T>, fine: readonly string[] = []): Promise<T | undefined> {
    for (;;) {
      const told = await this.ask(work);
      if (told !== undefined && "value" in told) return told.value;
      if (told !== undefined && !this.isTransient(told.error)) {
        if (isTapeError(told.error) && fine.includes(told.error.code)) return undefined;
        this.faults.push(`a client was told: ${String(told.error)}`);
        return undefined;
      }
      await this.#stage.time.sleep(500);
    }
  }

  isTransient(error: unknown): boolean {
    return isTapeError(error) && transient.has(error.code);
  }

  /** Everybody of the plan who starts, signals and cancels. */
  everybody(): Promise<unknown> {
    const { plan } = this.#stage;
    return Promise.all([
      ...plan.runs.flatMap((run) => [this.#start(run), this.#startAgain(run), this.#cancel(run)]),
      ...plan.signals.map((signal) => this.#signal(signal)),
      ...(plan.unbegun === undefined ? [] : [this.#unbegun(plan.unbegun)]),
    ]);
  }

  /** Started by a program that has the store and no worker: nobody holds the run. */
  async #unbegun({ id: run, workflow, program, atMs, cancelAfterMs }: PlannedUnbegun): Promise<void> {
    const { time, shared, plan } = this.#stage;
    const create = async (): Promise<void> => {
      while (shared.away) await time.sleep(500);
      const asked = time.wall();
      await shared.store.intake.createRuns(tenant, [{ id: run, workflow, input: program }]);
      this.acknowledge({ what: "run", run, asked });
    };
    await time.sleep(atMs);
    await create();
    await time.sleep(cancelAfterMs);
    const cancel = this.#whenThere(run, (tape) => tape.cancel(run, { reason: "a slip" }), { what: "cancel", run });
    if (plan.rewind !== undefined) {
      await this.#afterRewind(plan.rewind);
      await create();
    }
    await cancel;
  }

  /** Whoever sees that it is still there, although it was cancelled, says it once more. */
  async cancelAgain(): Promise<void> {
    const { plan, lookout } = this.#stage;
    if (plan.unbegun === undefined) return;
    const { id: run, workflow } = plan.unbegun;
    const { runs } = await lookout.look();
    if (workflow === "once" || !runs.some(({ id, endedAt }) => id === run && endedAt === null)) return;
    await this.ask((tape) => tape.cancel(run, { reason: "it is still there" }));
  }

  async #start(run: PlannedRun): Promise<void> {
    const { time, plan } = this.#stage;
    await time.sleep(run.atMs);
    await this.#begin(run);
    if (plan.rewind === undefined) return;
    await this.#afterRewind(plan.rewind);
    await this.#begin(run);
  }

  /** Whoever hears that the store has forgotten something says it again: the same id is the same run. */
  async #afterRewind({ atMs, awayMs }: Rewind): Promise<void> {
    const { time } = this.#stage;
    await time.sleep(Math.max(0, atMs + awayMs + 1_000 - time.now));
  }

  async #begin(run: PlannedRun): Promise<void> {
    const asked = this.#stage.time.wall();
    const options = { id: run.id, ...(run.usd === undefined ? {} : { budget: { usd: run.usd } }) };
    await this.insist((tape) => tape.start(this.#workflows[run.workflow], run.program, options));
    this.acknowledge({ what: "run", run: run.id, asked });
  }

  /** The same id once more: the same run, or a refusal where something else is asked for. */
  async #startAgain(run: PlannedRun): Promise<void> {
    const { time } = this.#stage;
    if (run.again === undefined) return;
    await time.sleep(run.atMs + run.again.atMs);
    const known = this.acknowledged.some(({ what, run: id }) => what === "run" && id === run.id);
    const { other } = run.again;
    // It would be the first, or the first that a store knows which has gone back.
    if (other && (!known || this.#stage.plan.rewind !== undefined)) return;
    const program = other ? { ...run.program, attempts: 7 } : run.program;
    const options = { id: run.id, ...(run.usd === undefined ? {} : { budget: { usd: run.usd } }) };
    const told = await this.ask((tape) => tape.start(this.#workflows[run.workflow], program, options));
    if (told === undefined || this.#stage.plan.rewind !== undefined) return;
    if ("error" in told && isTapeError(told.error)) this.met.add(told.error.code);
    if (other && "value" in told) this.faults.push(`${run.id} was started again as something else`);
    if ("error" in told && !this.isTransient(told.error) && !(other && isTapeError(told.error, "TAPE_RUN_CONFLICT")))
      this.faults.push(`who started ${run.id} again was told: ${String(told.error)}`);
  }

  async #signal(signal: PlannedSignal): Promise<void> {
    const { run, gate: name, atMs, key } = signal;
    await this.#stage.time.sleep(atMs);
    if (key !== undefined) {
      await this.#whenThere(run, (tape) => tape.signal(run, gate(name), { key }, { key }), {
        what: "signal",
        run,
        key,
      });
      return;
    }
    const text = `said ${this.said.length}`;
    const { time } = this.#stage;
    const said: KeylessSignal = {
      run,
      text,
      acknowledged: false,
      asked: time.wall(),
      answered: Number.POSITIVE_INFINITY,
    };
    this.said.push(said);
    const told = await this.ask((tape) => tape.signal(run, gate(name), { key: text }));
    said.acknowledged = told !== undefined && "value" in told;
    said.answered = time.wall();
  }

  async #cancel({ id: run, cancelAtMs }: PlannedRun): Promise<void> {
    if (cancelAtMs === undefined) return;
    await this.#stage.time.sleep(cancelAtMs);
    await this.#whenThere(run, (tape) => tape.cancel(run, { reason: "the plan says so" }), { what: "cancel", run });
  }

  async #whenThere(
    run: string,
    work: (tape: Tape) => Promise<void>,
    done: Omit<AcknowledgedCall, "at" | "asked">,
  ): Promise<void> {
    const asked = this.#stage.time.wall();
    for (;;) {
      const told = await this.ask(work);
      if (told !== undefined && "value" in told) return this.acknowledge({ ...done, asked });
      const error = told?.error;
      if (isTapeError(error, "TAPE_RUN_ENDED")) return;
      if (error !== undefined && !this.isTransient(error) && !isTapeError(error, "TAPE_RUN_NOT_FOUND")) {
        this.faults.push(`a client of ${run} was told: ${String(error)}`);
        return;
      }
      if (this.#stage.time.now > this.#stage.plan.healAtMs + patienceMs) {
        this.faults.push(
          `a client of ${run} has asked for ${patienceMs} ms and more, and is still told: ${String(error)}`,
        );
        return;
      }
      await this.#stage.time.sleep(1_000);
    }
  }

  acknowledge(done: Omit<AcknowledgedCall, "at">): void {
    this.acknowledged.push({ ...done, at: this.#stage.time.wall() });
  }
}
